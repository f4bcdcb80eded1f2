//! Which tools may be used at all, by name.

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use serde::Serialize;
use wildmatch::WildMatch;

/// Hides tools by their public names. `*` in a name stands for any characters, `?` for one.
///
/// A filter only ever hides: what is said twice holds twice. It works on names, after precedence: hiding a built-in
/// tool does not bring up one of a plugin's that has its name.
#[derive(Debug, Clone, Default)]
pub struct ToolFilter {
    disabled: Names,
    /// Each list has to have the name.
    enabled_only: Vec<Names>,
}

/// Names, and patterns of names.
#[derive(Debug, Clone, Default)]
struct Names {
    /// Those without a wildcard, of which there may be many.
    exact: HashSet<String>,
    patterns: Vec<WildMatch>,
}

impl Names {
    fn add<I: IntoIterator<Item = S>, S: AsRef<str>>(&mut self, names: I) {
        for name in names {
            let name = name.as_ref();
            if name.contains(['*', '?']) {
                self.patterns.push(WildMatch::new(name));
            } else {
                self.exact.insert(name.to_owned());
            }
        }
    }

    /// The one that stands for the name.
    fn of(&self, name: &str) -> Option<String> {
        let exact = self.exact.get(name).cloned();
        exact.or_else(|| self.patterns.iter().find(|pattern| pattern.matches(name)).map(ToString::to_string))
    }
}

/// Which rule hides a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "rule", content = "pattern")]
#[non_exhaustive]
pub enum HiddenBy {
    /// A name or pattern among those that are disabled.
    Disabled(String),
    /// A list of the only enabled ones, in which it is not.
    EnabledOnly,
}

impl fmt::Display for HiddenBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled(pattern) => write!(f, "{pattern:?} is among the disabled tools"),
            Self::EnabledOnly => f.write_str("it is not among the only enabled tools"),
        }
    }
}

impl ToolFilter {
    /// Hides the tools of these names.
    #[must_use]
    pub fn disable<I: IntoIterator<Item = S>, S: AsRef<str>>(mut self, names: I) -> Self {
        self.disabled.add(names);
        self
    }

    /// Hides all tools but those of these names. An empty list hides all.
    #[must_use]
    pub fn enable_only<I: IntoIterator<Item = S>, S: AsRef<str>>(mut self, names: I) -> Self {
        let mut list = Names::default();
        list.add(names);
        self.enabled_only.push(list);
        self
    }

    /// What both filters hide.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.disabled.exact.extend(other.disabled.exact);
        self.disabled.patterns.extend(other.disabled.patterns);
        self.enabled_only.extend(other.enabled_only);
        self
    }

    /// Which rule hides a tool that has any of these names.
    pub(crate) fn hides<'a>(&self, names: impl Iterator<Item = &'a str> + Clone) -> Option<HiddenBy> {
        let among = |list: &Names| names.clone().find_map(|name| list.of(name));
        if let Some(pattern) = among(&self.disabled) {
            return Some(HiddenBy::Disabled(pattern));
        }
        self.enabled_only.iter().any(|list| among(list).is_none()).then_some(HiddenBy::EnabledOnly)
    }

    /// What stands for none of these names: most likely it is misspelt.
    pub(crate) fn idle<'a>(&self, names: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
        let known: HashSet<&str> = names.clone().collect();
        let mut idle = BTreeSet::new();
        for list in std::iter::once(&self.disabled).chain(&self.enabled_only) {
            idle.extend(list.exact.iter().filter(|name| !known.contains(name.as_str())).cloned());
            let patterns = list.patterns.iter().filter(|pattern| !names.clone().any(|name| pattern.matches(name)));
            idle.extend(patterns.map(ToString::to_string));
        }
        idle.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hides(filter: &ToolFilter, name: &str) -> Option<HiddenBy> {
        filter.hides(std::iter::once(name))
    }

    #[test]
    fn a_name_is_hidden_by_each_rule_that_says_so() {
        let filter = ToolFilter::default().disable(["bash", "mcp_git_*"]).enable_only(["mcp_*", "read", "bash"]);
        assert_eq!(hides(&filter, "bash"), Some(HiddenBy::Disabled("bash".to_owned())));
        assert_eq!(hides(&filter, "mcp_git_log"), Some(HiddenBy::Disabled("mcp_git_*".to_owned())));
        assert_eq!(hides(&filter, "write"), Some(HiddenBy::EnabledOnly));
        assert_eq!((hides(&filter, "read"), hides(&filter, "mcp_time_now")), (None, None));
        assert_eq!(hides(&filter, "Read"), Some(HiddenBy::EnabledOnly), "names differ by case");
    }

    #[test]
    fn filters_add_up_and_an_empty_list_hides_all() {
        let both = ToolFilter::default().enable_only(["a", "b"]).and(ToolFilter::default().enable_only(["b", "c"]));
        assert_eq!((hides(&both, "b"), hides(&both, "a").is_some(), hides(&both, "c").is_some()), (None, true, true));
        assert!(hides(&ToolFilter::default().enable_only([] as [&str; 0]), "x").is_some());
        assert!(hides(&ToolFilter::default(), "x").is_none());
    }

    #[test]
    fn a_pattern_that_matches_nothing_is_told() {
        let filter = ToolFilter::default().disable(["bsh", "re*"]).enable_only(["read", "bsh"]);
        assert_eq!(filter.idle(["bash", "read"].into_iter()), ["bsh"]);
    }
}
