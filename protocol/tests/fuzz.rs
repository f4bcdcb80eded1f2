//! The fuzz target's checks on every compiler: the vectors as they are, and a bounded number of mutations of them.
//! `tests/fuzz` runs the same checks without a bound and guided by coverage.

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

mod stream;

/// The vectors' lines as bytes.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")).expect("the vectors") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let group: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("text")).expect("JSON");
            let lines = group["vectors"].as_array().into_iter().flatten();
            seeds.extend(lines.filter_map(|vector| vector["line"].as_str()).map(|line| line.as_bytes().to_vec()));
        }
    }
    assert!(seeds.len() > 100);
    seeds
}

#[derive(Debug, Clone)]
enum Mutation {
    Replace(Index, u8),
    Insert(Index, Vec<u8>),
    Delete(Index, usize),
    /// A part of the stream once more, somewhere else.
    Copy(Index, usize, Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let words = ["\"id\":", "\"result\":", "\n", "\r\n", "\\", "\"", "{", "}", ",", "null", "\u{feff}"];
    let word = prop::sample::select(words.to_vec());
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Mutation::Replace(at, byte)),
        (any::<Index>(), word).prop_map(|(at, word)| Mutation::Insert(at, word.as_bytes().to_vec())),
        (any::<Index>(), 1usize..20).prop_map(|(at, length)| Mutation::Delete(at, length)),
        (any::<Index>(), 1usize..40, any::<Index>()).prop_map(|(from, length, to)| Mutation::Copy(from, length, to)),
    ]
}

fn mutate(bytes: &mut Vec<u8>, mutation: &Mutation) {
    let at = |index: &Index, bytes: &[u8]| index.index(bytes.len() + 1);
    match mutation {
        Mutation::Replace(index, byte) => {
            let at = at(index, bytes);
            bytes.splice(at..bytes.len().min(at + 1), [*byte]);
        }
        Mutation::Insert(index, word) => {
            let at = at(index, bytes);
            bytes.splice(at..at, word.iter().copied());
        }
        Mutation::Delete(index, length) => {
            let at = at(index, bytes);
            bytes.drain(at..bytes.len().min(at + length));
        }
        Mutation::Copy(from, length, to) => {
            let (from, to) = (at(from, bytes), at(to, bytes));
            let part = bytes[from..bytes.len().min(from + length)].to_vec();
            bytes.splice(to..to, part);
        }
    }
}

#[test]
fn no_vector_does_harm() {
    let stream = seeds().join(&b'\n');
    for limit in [0, 1, 40, 100, 16 << 20] {
        for read in [1, 7, 4096] {
            stream::check(&stream, &[read], limit);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_mutation_of_vectors_does_harm(
        lines in vec(prop::sample::select(seeds()), 1..4),
        mutations in vec(mutation(), 0..6),
        read in 1usize..100,
        limit in 0usize..300,
    ) {
        let mut bytes = lines.join(&b'\n');
        bytes.push(b'\n');
        for mutation in &mutations {
            mutate(&mut bytes, mutation);
        }
        stream::check(&bytes, &[read], limit);
    }
}
