//! The name of a plugin: its identity in config, reports, the environment and the names of MCP
//! tools.

use std::{borrow::Borrow, fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize, Serializer};

use crate::report::PluginText;

/// The longest name, in characters.
const MAX: usize = 64;

/// A plugin's name: 1 to 64 of `a-z`, `0-9`, `.`, `_` and `-`, the first a letter or digit.
///
/// It is safe as a file name, in an environment variable and in a terminal. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct PluginName(Arc<str>);

/// A text that is not a [`PluginName`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not a plugin name: 1 to {MAX} of `a-z`, `0-9`, `.`, `_` and `-`, beginning with a letter or digit",
    given.capped(80)
)]
#[non_exhaustive]
pub struct PluginNameError {
    /// The text that was given.
    pub given: PluginText,
}

impl PluginName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Makes a name of any text, such as a file's name: in lower case, with `-` for what no name
    /// may hold, cut to the longest name; `plugin` when no letter or digit of ASCII is in the text.
    pub fn from_any(text: &str) -> Self {
        let name: String = text
            .chars()
            .map(|c| c.to_ascii_lowercase())
            .map(|c| if may_follow(c) { c } else { '-' })
            .skip_while(|&c| !may_begin(c))
            .take(MAX)
            .collect();
        match name.trim_end_matches(|c| !may_begin(c)) {
            "" => Self("plugin".into()),
            name => Self(name.into()),
        }
    }
}

fn may_begin(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

fn may_follow(c: char) -> bool {
    may_begin(c) || matches!(c, '.' | '_' | '-')
}

impl FromStr for PluginName {
    type Err = PluginNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() <= MAX && text.starts_with(may_begin) && text.chars().all(may_follow) {
            Ok(Self(text.into()))
        } else {
            Err(PluginNameError { given: text.into() })
        }
    }
}

impl TryFrom<String> for PluginName {
    type Error = PluginNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl Serialize for PluginName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl fmt::Display for PluginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for PluginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl AsRef<str> for PluginName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for PluginName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_follow_the_rule() {
        for good in ["a", "9", "hello-python", "x.y_z-1", &"a".repeat(64)] {
            assert_eq!(good.parse::<PluginName>().unwrap().as_str(), good);
        }
        for bad in ["", "-a", ".a", "_a", "Hello", "a b", "a/b", "é", "a\n", &"a".repeat(65)] {
            assert!(bad.parse::<PluginName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_error_says_the_rule_and_shows_the_text_harmlessly() {
        let error = "A\u{1b}".parse::<PluginName>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`A\\u{1b}` is not a plugin name: 1 to 64 of `a-z`, `0-9`, `.`, `_` and `-`, beginning with a letter or digit"
        );
    }

    #[test]
    fn any_text_makes_a_name() {
        let made = |text| PluginName::from_any(text).to_string();
        assert_eq!(made("My Server.V2"), "my-server.v2");
        assert_eq!(made("--hello--"), "hello");
        assert_eq!(made("été"), "t");
        assert_eq!(made("日本"), "plugin");
        assert_eq!(made(""), "plugin");
    }

    #[test]
    fn json_is_checked() {
        let name: PluginName = serde_json::from_str("\"a-b\"").unwrap();
        assert_eq!(serde_json::to_string(&name).unwrap(), "\"a-b\"");
        assert!(serde_json::from_str::<PluginName>("\"A\"").is_err());
    }

    proptest! {
        #[test]
        fn what_from_any_makes_is_a_name(text in any::<String>()) {
            let name = PluginName::from_any(&text);
            prop_assert_eq!(name.as_str().parse::<PluginName>().unwrap(), name);
        }
    }
}
