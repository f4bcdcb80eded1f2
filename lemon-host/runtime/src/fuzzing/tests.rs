//! The same checks on every compiler: the seeds as they are, and a bounded number of changes of them.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

/// What is in a folder of seeds.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/seeds").join(target);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() > 2, "{target}");
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// A piece of one seed in place of a piece of another.
fn crossed(target: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let (seeds, all) = (prop::sample::select(seeds(target)), seeds(target).concat());
    let changes = prop::collection::vec((any::<Index>(), 0usize..8, any::<Index>(), 0usize..24), 0..6);
    (seeds, changes).prop_map(move |(mut bytes, changes)| {
        for (at, gone, from, length) in changes {
            let (at, from) = (at.index(bytes.len() + 1), from.index(all.len()));
            let piece = all[from..all.len().min(from + length)].to_vec();
            bytes.splice(at..bytes.len().min(at + gone), piece);
        }
        bytes
    })
}

#[test]
fn no_seed_does_harm() {
    seeds("start").iter().for_each(|seed| super::start(seed));
    seeds("list").iter().for_each(|seed| super::list(seed));
    seeds("schema").iter().for_each(|seed| super::schema(seed));
    seeds("arguments").iter().for_each(|seed| super::arguments(seed));
    seeds("manifest").iter().for_each(|seed| super::manifest(seed));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        // The same changes each time: looking for new ones is the fuzzer's part.
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_change_of_a_start_does_harm(bytes in crossed("start")) {
        super::start(&bytes);
    }

    #[test]
    fn no_change_of_a_list_does_harm(bytes in crossed("list")) {
        super::list(&bytes);
    }

    #[test]
    fn no_change_of_a_schema_does_harm(bytes in crossed("schema")) {
        super::schema(&bytes);
    }

    #[test]
    fn no_change_of_arguments_does_harm(bytes in crossed("arguments")) {
        super::arguments(&bytes);
    }

    #[test]
    fn no_change_of_a_manifest_does_harm(bytes in crossed("manifest")) {
        super::manifest(&bytes);
    }
}
