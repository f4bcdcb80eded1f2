//! What a mistyped name may have meant, found in bounded work: names and candidates may come from a plugin.

/// The longest name that is compared, in characters.
const LENGTH: usize = 128;
/// What all comparisons of one name may take, in characters of one name times characters of the other: a few hundred
/// microseconds.
const WORK: usize = 1 << 16;
/// The most bytes of candidates that are looked at.
const LOOK: usize = 1 << 20;

/// The candidate that a mistyped name most likely stands for: the nearest by edits (a swap of
/// neighbours counts once), the first of several, and none that needs edits to more than a third of
/// the name. Of very many that are alike, those with the most characters in common are compared.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().take(LENGTH + 1).count();
    if length > LENGTH {
        return None;
    }
    let most = length.max(3) / 3;
    let letters = Letters::of(name);
    let (mut look, mut near) = (LOOK, Vec::new());
    for (at, candidate) in candidates.into_iter().enumerate() {
        let Some(left) = look.checked_sub(candidate.len() + size_of::<Letters>()) else { break };
        look = left;
        // A character takes four bytes at most.
        if candidate.len() > 4 * (length + most) {
            continue;
        }
        let candidate_length = candidate.chars().count();
        let least = letters.least_distance(&Letters::of(candidate));
        if candidate_length.abs_diff(length) <= most && least <= most {
            near.push((least, at, candidate_length, candidate));
        }
    }
    near.sort_unstable();
    let mut work = WORK;
    let mut found: Option<(usize, usize, &str)> = None;
    for (least, at, candidate_length, candidate) in near {
        if found.is_some_and(|(distance, ..)| least > distance) {
            break;
        }
        let Some(left) = work.checked_sub(length * candidate_length) else { break };
        work = left;
        let distance = strsim::damerau_levenshtein(name, candidate);
        if distance <= most && found.is_none_or(|(best, first, _)| (distance, at) < (best, first)) {
            found = Some((distance, at, candidate));
        }
    }
    found.map(|(_, _, candidate)| candidate)
}

/// How often characters stand in a name, whatever their order.
struct Letters([u8; 128]);

impl Letters {
    fn of(name: &str) -> Self {
        let mut counts = [0_u8; 128];
        for letter in name.chars() {
            let count = &mut counts[letter as usize % 128];
            *count = count.saturating_add(1);
        }
        Self(counts)
    }

    /// The fewest edits that can lead from one to the other: each adds a character, takes one away, or both.
    fn least_distance(&self, other: &Self) -> usize {
        let pairs = || self.0.iter().zip(&other.0);
        let missing: usize = pairs().map(|(one, two)| usize::from(one.saturating_sub(*two))).sum();
        let added: usize = pairs().map(|(one, two)| usize::from(two.saturating_sub(*one))).sum();
        missing.max(added)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_far_ones_are_not() {
        let known = ["command", "cwd", "env", "enabled"];
        assert_eq!(nearest("comand", known), Some("command"));
        assert_eq!(nearest("commnad", known), Some("command"));
        assert_eq!(nearest("evn", known), Some("env"));
        assert_eq!(nearest("enable", known), Some("enabled"));
        assert_eq!(nearest("description", known), None);
        assert_eq!(nearest("", known), None);
    }

    #[test]
    fn many_and_long_candidates_are_not_all_compared() {
        let asked = Cell::new(0);
        let long = "x".repeat(1 << 16);
        let candidates = (0..1 << 20).map(|_| long.as_str()).inspect(|_| asked.set(asked.get() + 1));
        assert_eq!(nearest("x", candidates), None);
        assert!(asked.get() <= 1 + LOOK / long.len(), "{}", asked.get());
        assert_eq!(nearest(&long, [long.as_str()]), None, "too long to compare");
        // The best one is compared first, however many there are.
        let tools: Vec<_> = (0..4096).map(|at| format!("{}{at:04}", "tool_".repeat(12))).collect();
        let wanted = &tools[4095];
        assert_eq!(nearest(&wanted.replacen('t', "", 1), tools.iter().map(String::as_str)), Some(wanted.as_str()));
    }

    proptest! {
        #[test]
        fn nothing_nearer_is_left_out(name in "[a-dé]{0,8}", known in prop::collection::vec("[a-dé]{0,8}", 0..8)) {
            let most = name.chars().count().max(3) / 3;
            let distances = known.iter().map(|known| strsim::damerau_levenshtein(&name, known));
            let best = distances.enumerate().filter(|(_, distance)| *distance <= most).min_by_key(|(at, distance)| (*distance, *at));
            let expected = best.map(|(at, _)| known[at].as_str());
            prop_assert_eq!(nearest(&name, known.iter().map(String::as_str)), expected);
        }
    }
}
