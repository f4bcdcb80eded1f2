//! The end of a pipe that a peer writes to.

use tokio::io::{AsyncWrite, Interest};
use tokio::net::unix::pipe;

/// What a peer writes to.
pub(crate) trait Input: AsyncWrite + Unpin + Send + 'static {
    /// Waits until nobody is there any more to read what would be written.
    fn broken(&self) -> impl Future<Output = ()> + Send;
}

impl Input for pipe::Sender {
    async fn broken(&self) {
        // A pipe has an error when its last reader is gone, and no other one.
        let _ = self.ready(Interest::ERROR).await;
    }
}

#[cfg(any(test, feature = "fuzzing"))]
impl Input for tokio::io::Sink {
    async fn broken(&self) {
        std::future::pending().await
    }
}

/// In memory a missing reader shows with the next write only.
#[cfg(test)]
mod in_memory {
    use tokio::io::{DuplexStream, WriteHalf};

    use super::Input;

    impl Input for DuplexStream {
        async fn broken(&self) {
            std::future::pending().await
        }
    }

    impl Input for WriteHalf<DuplexStream> {
        async fn broken(&self) {
            std::future::pending().await
        }
    }
}
