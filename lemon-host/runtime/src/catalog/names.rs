//! The names that tools get in front of a model.
//!
//! A [`PublicName`] matches `[A-Za-z0-9_-]{1,64}`, the most that all model APIs take. It depends on
//! the raw names in the catalogue alone, never on chance or on who came first, so that a tool is
//! called the same in every run. Tools that still share a name afterwards are a conflict, which
//! precedence decides.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::Serialize;
use sha2::{Digest, Sha256};

/// The longest public name, in bytes.
pub(crate) const MAX_NAME: usize = 64;

/// What the public names of all MCP tools begin with, and no others.
pub(crate) const MCP_PREFIX: &str = "mcp_";

/// The suffix of a changed name: `_` and eight hexadecimal digits.
const SUFFIX: usize = 9;

/// A tool's name as a model sees it: `[A-Za-z0-9_-]{1,64}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub(crate) struct PublicName(String);

impl PublicName {
    /// The name as text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PublicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl AsRef<str> for PublicName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for PublicName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// What a tool's name is made of.
///
/// An extension's identity is no part of its tools' names: two extensions that offer the same name
/// are in conflict, whether or not the name had to be changed, and so are an extension and the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Source<'a> {
    /// An extension or the embedding program, whose tools keep their names.
    Plain,
    /// The MCP server of this name, whose tools are called `mcp_<server>_<tool>`.
    Mcp(&'a str),
}

/// A tool before it has a public name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RawName<'a> {
    /// Where the tool comes from.
    pub(crate) source: Source<'a>,
    /// The name that the plugin gave it.
    pub(crate) name: &'a str,
}

/// Why a tool gets no public name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum NameError {
    /// The plugin gave it no name, or white space only.
    #[error("the tool's name is empty")]
    Empty,
    /// An extension's tool is called like an MCP tool.
    #[error("the tool's name is reserved: `{MCP_PREFIX}…` is for the tools of MCP servers")]
    Reserved,
}

impl<'a> RawName<'a> {
    /// The name before normalisation.
    fn full(&self) -> String {
        match self.source {
            Source::Plain => self.name.to_owned(),
            Source::Mcp(server) => format!("{MCP_PREFIX}{server}_{}", self.name),
        }
    }

    /// The name with `_` for each character that may not stand in a public name; of any length.
    fn normal(&self) -> String {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        self.full().chars().map(|c| if allowed(c) { c } else { '_' }).collect()
    }

    /// The name that it has if no other tool is there.
    pub(crate) fn alone(&self) -> PublicName {
        public_name(self.source, self.name)
    }

    fn hashed(&self) -> PublicName {
        let mut hash = Sha256::new();
        if let Source::Mcp(server) = self.source {
            // A NUL stands in no server's name, so that no two identities are hashed alike.
            hash.update(server);
            hash.update([0]);
        }
        hash.update(self.name);
        let mut name = self.normal();
        name.truncate(MAX_NAME - SUFFIX);
        name.push('_');
        for byte in &hash.finalize()[..(SUFFIX - 1) / 2] {
            name.push_str(&format!("{byte:02x}"));
        }
        PublicName(name)
    }
}

/// The public name of one tool alone; in a catalogue of several, [`public_names`] decides.
///
/// A name that is too long keeps its head and gets a suffix made of the whole raw identity.
pub(crate) fn public_name(source: Source<'_>, raw: &str) -> PublicName {
    let raw = RawName { source, name: raw };
    let normal = raw.normal();
    if normal.is_empty() || normal.len() > MAX_NAME { raw.hashed() } else { PublicName(normal) }
}

/// Names all tools of a catalogue, in the order given.
///
/// Where different raw names normalise alike, the one that needed no change keeps its name and each
/// changed one gets a suffix. `mcp_a_b_c` may be tool `b_c` of server `a` or tool `c` of server
/// `a_b`: if both exist, both get one.
pub(crate) fn public_names(tools: &[RawName<'_>]) -> Vec<Result<PublicName, NameError>> {
    let refusal = |tool: &RawName<'_>, normal: &str| {
        if tool.name.trim().is_empty() {
            Some(NameError::Empty)
        } else if tool.source == Source::Plain && normal.starts_with(MCP_PREFIX) {
            Some(NameError::Reserved)
        } else {
            None
        }
    };
    let mut alike: BTreeMap<String, BTreeSet<RawName<'_>>> = BTreeMap::new();
    for tool in tools {
        let normal = tool.normal();
        // A refused tool must not change what others are called.
        if refusal(tool, &normal).is_none() {
            alike.entry(normal).or_default().insert(*tool);
        }
    }
    let name = |tool: &RawName<'_>| {
        let normal = tool.normal();
        if let Some(error) = refusal(tool, &normal) {
            return Err(error);
        }
        let unchanged = |raw: &RawName<'_>| raw.full() == normal;
        let mut rivals = alike.get(&normal).into_iter().flatten().filter(|rival| *rival != tool);
        let keeps = if unchanged(tool) { !rivals.any(unchanged) } else { rivals.next().is_none() };
        Ok(if keeps { public_name(tool.source, tool.name) } else { tool.hashed() })
    };
    tools.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EXT: Source<'_> = Source::Plain;

    fn named(tools: &[(Source<'_>, &str)]) -> Vec<String> {
        let tools: Vec<_> = tools.iter().map(|&(source, name)| RawName { source, name }).collect();
        let shown = |name: Result<PublicName, NameError>| name.map_or_else(|e| format!("{e:?}"), |n| n.0);
        public_names(&tools).into_iter().map(shown).collect()
    }

    #[test]
    fn ordinary_names_stay() {
        assert_eq!(named(&[(EXT, "echo"), (EXT, "Read-File_2")]), ["echo", "Read-File_2"]);
        assert_eq!(named(&[(Source::Mcp("time"), "get_time")]), ["mcp_time_get_time"]);
    }

    #[test]
    fn other_characters_become_underscores() {
        assert_eq!(named(&[(EXT, "read file/é")]), ["read_file__"]);
        assert_eq!(named(&[(Source::Mcp("a.b"), "c:d")]), ["mcp_a_b_c_d"]);
    }

    #[test]
    fn a_long_name_keeps_its_head_and_gets_a_stable_suffix() {
        let long = "x".repeat(65);
        let names =
            named(&[(EXT, &long), (Source::Mcp("s"), &long), (Source::Mcp("t"), &long), (EXT, &"y".repeat(64))]);
        assert_eq!(names[0], format!("{}_9537c5fd", "x".repeat(55)));
        assert_eq!(names[1][..55], format!("mcp_s_{}", "x".repeat(49)));
        assert!(names.iter().all(|name| name.len() == 64));
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 4);
        assert_eq!(names[3], "y".repeat(64));
        assert_eq!(public_name(EXT, &long).as_str(), names[0]);
    }

    #[test]
    fn of_names_that_normalise_alike_each_changed_one_gets_a_suffix() {
        let names = named(&[(EXT, "read.file"), (EXT, "read_file"), (EXT, "read file"), (EXT, "read.file")]);
        assert_eq!(names[1], "read_file");
        assert!(names[0].starts_with("read_file_") && names[2].starts_with("read_file_"));
        assert_ne!(names[0], names[2]);
        assert_eq!(names[0], names[3], "one raw name, one public name: precedence decides");
        assert_eq!(named(&[(EXT, "read.file"), (EXT, "read.file")]), ["read_file", "read_file"]);
    }

    #[test]
    fn two_servers_whose_names_join_alike_are_told_apart() {
        let names = named(&[(Source::Mcp("a"), "b_c"), (Source::Mcp("a_b"), "c"), (Source::Mcp("a"), "x")]);
        assert!(names[0].starts_with("mcp_a_b_c_") && names[1].starts_with("mcp_a_b_c_"));
        assert_ne!(names[0], names[1]);
        assert_eq!(names[2], "mcp_a_x");
    }

    #[test]
    fn empty_and_reserved_names_are_refused() {
        assert_eq!(named(&[(EXT, ""), (EXT, "  "), (Source::Mcp("s"), "")]), ["Empty", "Empty", "Empty"]);
        assert_eq!(named(&[(EXT, "mcp_x"), (EXT, "mcp.x")]), ["Reserved", "Reserved"]);
        assert_eq!(named(&[(Source::Mcp("s"), "x"), (EXT, "mcp_s_x")]), ["mcp_s_x", "Reserved"]);
        assert_eq!(named(&[(Source::Mcp("s"), "mcp_x"), (EXT, "mcpx")]), ["mcp_s_mcp_x", "mcpx"]);
    }

    proptest! {
        #[test]
        fn names_match_the_rule_and_do_not_depend_on_order(
            raw in prop::collection::vec((prop::option::of("[ab._]{1,3}"), "[ab._ é]{1,5}|[xé]{60,70}"), 1..8),
        ) {
            let tools: Vec<_> = raw.iter().map(|(server, name)| RawName {
                source: server.as_deref().map_or(EXT, Source::Mcp),
                name,
            }).collect();
            let names = public_names(&tools);
            for (tool, name) in tools.iter().zip(&names) {
                let Ok(name) = name else {
                    prop_assert!(tool.name.trim().is_empty());
                    continue;
                };
                prop_assert!((1..=64).contains(&name.0.len()));
                prop_assert!(name.0.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
            }
            for (a, name_a) in tools.iter().zip(&names) {
                for (b, name_b) in tools.iter().zip(&names) {
                    if name_a.is_ok() && name_b.is_ok() {
                        prop_assert_eq!(a == b, name_a == name_b);
                    }
                }
            }
            let reversed: Vec<_> = tools.iter().rev().copied().collect();
            let mut again = public_names(&reversed);
            again.reverse();
            prop_assert_eq!(again, names);
        }
    }
}
