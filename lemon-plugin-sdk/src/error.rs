//! What can go wrong, for whom: [`ToolError`] is for the model, [`HostError`] for a handler that asked the host for
//! something, [`ConfigError`] for the user, and [`ServeError`] for the author of the plugin.

use std::error::Error;
use std::fmt;

use lemon_protocol::{ErrorObject, Kind};

/// Why a tool failed, in words that the model reads. Any error becomes one by `?`, a text does too.
///
/// The text is the error's own followed by those of its sources. A handler need not use this type: whatever converts
/// into it may stand in the `Result` that a handler returns.
///
/// ```
/// use lemon_plugin_sdk::ToolError;
///
/// fn size(path: &str) -> Result<u64, ToolError> {
///     if path.is_empty() {
///         return Err("the path is empty".into());
///     }
///     Ok(std::fs::metadata(path)?.len())
/// }
/// assert_eq!(size("").unwrap_err().to_string(), "the path is empty");
/// assert!(size("/nowhere").unwrap_err().to_string().starts_with("No such file"));
/// ```
pub struct ToolError(Box<dyn Error + Send + Sync>);

impl ToolError {
    /// An error of anything that can be shown, for what is no error type itself.
    pub fn msg(message: impl fmt::Display) -> Self {
        Self(message.to_string().into())
    }

    /// The error that this one was made of.
    pub fn get_ref(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl fmt::Display for ToolError {
    /// Writes the error and its sources, joined by `: `. A source whose text its successor repeats is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.0.to_string();
        f.write_str(&text)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            let next = error.to_string();
            if !text.ends_with(&next) {
                write!(f, ": {next}")?;
            }
            text = next;
            source = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why the host did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The host does not offer this request, or is a plain MCP client, which offers none.
    #[error("the host does not offer {method}")]
    NotOffered {
        /// The request.
        method: &'static str,
    },
    /// The host answered with an error.
    #[error("the host refused: {}", .0.message)]
    Refused(ErrorObject),
    /// The call on whose behalf the host was asked was cancelled.
    #[error("the call was cancelled")]
    Cancelled,
    /// The call on whose behalf the host was asked is over, or the session closed.
    #[error("the call or session is over")]
    Over,
    /// The host is gone.
    #[error("the host is gone")]
    Gone,
    /// The request is longer than a message may be.
    #[error("the request has {bytes} bytes, the limit is {limit}")]
    TooLarge {
        /// The length of the request.
        bytes: usize,
        /// What the host takes.
        limit: usize,
    },
    /// The arguments can't be written as JSON, or the answer is not what the method gives.
    #[error("{0}")]
    Unreadable(String),
}

impl HostError {
    /// The kind of the protocol's error table, if the answer named one or this error stands for one.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::Refused(error) => error.kind(),
            Self::Cancelled => Some(Kind::Cancelled),
            Self::Over => Some(Kind::Stale),
            Self::TooLarge { .. } => Some(Kind::TooLarge),
            Self::NotOffered { .. } | Self::Gone | Self::Unreadable(_) => None,
        }
    }
}

/// Why a configuration is not acceptable, and where (LPP-CONF-08).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", if pointer.is_empty() { String::new() } else { format!("{pointer}: ") })]
pub struct ConfigError {
    pointer: String,
    message: String,
}

impl ConfigError {
    /// A fault at one place of the configuration: a JSON Pointer such as `/servers/0/url`, or `""` for the whole.
    pub fn at(pointer: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { pointer: pointer.into(), message: message.to_string() }
    }

    /// A fault of the configuration as a whole.
    pub fn whole(message: impl fmt::Display) -> Self {
        Self::at("", message)
    }

    /// The place, as a JSON Pointer (RFC 6901) into the values.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// What is wrong there.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Why a plugin could not be served.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A tool is not defined as it has to be. Told at the start, before anything is read.
    #[error("tool {tool}: {problem}")]
    Tool {
        /// The tool's name.
        tool: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The configuration is not declared as it has to be. Told at the start, before anything is read.
    #[error("configuration: {0}")]
    Config(String),
    /// The standard input or output can't be used, or failed.
    #[error("failed to {action}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

impl fmt::Debug for ServeError {
    /// Reads like the error's text, as that is what Rust shows when `main` returns an error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        if let Some(source) = self.source() {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("failed to read the index")]
    struct Outer(#[source] std::num::ParseIntError);

    #[derive(Debug, thiserror::Error)]
    #[error("failed to read the index: {0}")]
    struct Repeating(#[source] std::num::ParseIntError);

    #[test]
    fn the_model_reads_the_sources_of_an_error_once() {
        let cause = || "x".parse::<i32>().unwrap_err();
        let expected = "failed to read the index: invalid digit found in string";
        assert_eq!(ToolError::from(Outer(cause())).to_string(), expected);
        assert_eq!(ToolError::from(Repeating(cause())).to_string(), expected);
        let chain = anyhow::Error::new(cause()).context("failed to read the index");
        assert_eq!(ToolError::from(chain).to_string(), expected);
    }

    #[test]
    fn an_error_of_main_is_shown_as_a_sentence() {
        let source = std::io::Error::other("closed");
        assert_eq!(format!("{:?}", ServeError::Io { action: "write", source }), "failed to write: closed");
    }
}
