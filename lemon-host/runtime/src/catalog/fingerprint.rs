//! Whether a tool is still the one that somebody was shown.

use lemon_protocol::Tool;
use sha2::{Digest as _, Sha256};

use super::ToolSource;

/// What a caller is told of a tool, as a hash: who provides it, its name, title, description, schemas and annotations.
/// Metadata (`_meta`) is not among that, as it is for hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub(super) fn of(source: &ToolSource, tool: &Tool) -> Self {
        let Tool { name, title, description, input_schema, output_schema, annotations, meta: _ } = tool;
        let told = (source.to_string(), name, title, description, input_schema, output_schema, annotations);
        // Texts and JSON can be written as JSON; the members of an object are sorted.
        Self(Sha256::digest(serde_json::to_vec(&told).unwrap_or_default()).into())
    }
}
