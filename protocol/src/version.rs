//! Versions of the protocol: two integers, offered by the host and picked by the plugin (LPP-VER-01 to -04).

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// MCP's revisions that a host accepts from a server, oldest first. The host offers the last one.
pub const MCP_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// A version of Lemon's protocol, `MAJOR.MINOR`, independent of any product's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProtocolVersion {
    /// Changes when something is taken away or means another thing.
    pub major: u16,
    /// Changes when something is added.
    pub minor: u16,
}

impl ProtocolVersion {
    /// The draft that this crate describes.
    pub const CURRENT: Self = Self { major: 1, minor: 0 };

    /// All that this crate speaks, best first.
    pub const OFFERED: [Self; 1] = [Self::CURRENT];

    /// The best version that is in both lists.
    ///
    /// # Errors
    /// Names both lists when they have nothing in common.
    pub fn common(ours: &[Self], theirs: &[Self]) -> Result<Self, NoCommonVersion> {
        ours.iter()
            .filter(|version| theirs.contains(version))
            .max()
            .copied()
            .ok_or_else(|| NoCommonVersion { host: ours.to_vec(), plugin: theirs.to_vec() })
    }
}

/// The host and the plugin have no version in common.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no protocol version in common: the host speaks {}, the plugin {}; upgrade the {}", list(host), list(plugin), self.older())]
pub struct NoCommonVersion {
    /// What the host offered.
    pub host: Vec<ProtocolVersion>,
    /// What the plugin speaks.
    pub plugin: Vec<ProtocolVersion>,
}

impl NoCommonVersion {
    /// The side that has to be upgraded.
    fn older(&self) -> &'static str {
        if self.plugin.iter().max() > self.host.iter().max() { "host" } else { "plugin" }
    }
}

fn list(versions: &[ProtocolVersion]) -> String {
    if versions.is_empty() {
        return "none that it names".to_owned();
    }
    versions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for ProtocolVersion {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const RULE: &str = "a protocol version is two integers, MAJOR.MINOR";
        let plain = |part: &str| part.bytes().all(|b| b.is_ascii_digit()) && (part == "0" || !part.starts_with('0'));
        let (major, minor) = text.split_once('.').ok_or(RULE)?;
        if !plain(major) || !plain(minor) {
            return Err(RULE);
        }
        Ok(Self { major: major.parse().map_err(|_| RULE)?, minor: minor.parse().map_err(|_| RULE)? })
    }
}

impl Serialize for ProtocolVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ProtocolVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for ProtocolVersion {
    fn schema_name() -> Cow<'static, str> {
        "ProtocolVersion".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A version of Lemon's protocol, MAJOR.MINOR.",
            "type": "string",
            "pattern": "^(0|[1-9][0-9]{0,4})\\.(0|[1-9][0-9]{0,4})$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(list: &[&str]) -> Vec<ProtocolVersion> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn the_best_common_version_is_picked() {
        let common = ProtocolVersion::common(&versions(&["1.0", "1.2", "2.0"]), &versions(&["1.2", "1.0", "3.0"]));
        assert_eq!(common.unwrap().to_string(), "1.2");
    }

    #[test]
    fn no_common_version_names_both_lists_and_the_side_to_upgrade() {
        let error = ProtocolVersion::common(&versions(&["1.0"]), &versions(&["2.0", "2.1"])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no protocol version in common: the host speaks 1.0, the plugin 2.0, 2.1; upgrade the host"
        );
    }

    #[test]
    fn only_two_plain_integers_are_a_version() {
        for text in ["1", "1.0.0", "v1.0", "1.x", "01.0", "+1.0", "", "1.", "70000.0"] {
            assert!(text.parse::<ProtocolVersion>().is_err(), "{text:?}");
        }
    }
}
