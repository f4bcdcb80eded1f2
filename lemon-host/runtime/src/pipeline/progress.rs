//! How far a call has got, while it is under way.

use tokio::sync::broadcast;

use crate::report::PluginText;

/// How far a call has got.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// How far it is.
    pub progress: f64,
    /// How far it will go, if that is known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<PluginText>,
}

/// The progress notes of one call, until it ends. A reader that is slow misses the oldest ones.
#[derive(Debug)]
pub struct ProgressStream(pub(super) broadcast::Receiver<Progress>);

impl ProgressStream {
    /// The next note; none when the call has ended.
    pub async fn next(&mut self) -> Option<Progress> {
        loop {
            match self.0.recv().await {
                Ok(note) => return Some(note),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
