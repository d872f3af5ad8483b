//! Random inputs of tests, the same in every run unless they are asked for otherwise.
//!
//! A test whose name starts with `fuzz_` takes its inputs from [`inputs`]. `cargo test` makes as
//! many as the test says; scripts/fuzz.sh makes more, from any seed.

use std::ops::Range;

/// Random numbers that are the same for the same seed (xorshift64*).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Numbers of their own for each seed, also for seeds that are close together.
    pub(crate) fn new(seed: u64) -> Random {
        // The last steps of splitmix64. Zero is the one state that xorshift never leaves.
        let mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Random((mixed ^ (mixed >> 27)).max(1))
    }

    /// Any number of 48 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    /// True in so many of 100 cases.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// A short text with what JSON, events and lines make something of, and wide characters.
    pub(crate) fn text(&mut self) -> String {
        let pool = ["a", "b ", " ", "\n", "\r", "\"", "\\", "{", "]", ":", "\u{1}", "data: "];
        let wide = ["\u{e9}", "\u{65e5}", "\u{1f642}", "\u{2028}", "\u{feff}"];
        (0..self.below(20))
            .map(|_| if self.chance(70) { self.pick(&pool) } else { self.pick(&wide) })
            .copied()
            .collect()
    }

    /// Cuts text into at least one fragment.
    pub(crate) fn cut(&mut self, text: &str) -> Vec<String> {
        let mut fragments = vec![String::new()];
        for character in text.chars() {
            if self.chance(30) {
                fragments.push(String::new());
            }
            fragments.last_mut().unwrap().push(character);
        }
        fragments
    }

    /// Changes, cuts out and doubles up to five pieces of the input. Changed bytes become ones of
    /// the alphabet.
    pub(crate) fn damage(&mut self, input: &mut Vec<u8>, alphabet: &[u8]) {
        for _ in 0..self.below(6) {
            if input.is_empty() {
                break;
            }
            let start = self.below(input.len());
            let end = start + self.below((input.len() - start).min(30));
            match self.below(3) {
                0 => input[start] = *self.pick(alphabet),
                1 => drop(input.drain(start..end)),
                _ => {
                    let part = input[start..end].to_vec();
                    input.splice(end..end, part);
                }
            }
        }
    }
}

/// The seeds of a test's inputs, one after the other, and the numbers of each.
pub(crate) struct Inputs {
    name: &'static str,
    seeds: Range<u64>,
    first: u64,
}

/// So many inputs, or as many as `FUZZ_INPUTS` says, from the seed 1 on or that of `FUZZ_SEED`.
/// One input comes again with its seed and a single input.
pub(crate) fn inputs(name: &'static str, default_count: u64) -> Inputs {
    let count = variable("FUZZ_INPUTS").unwrap_or(default_count);
    let first = variable("FUZZ_SEED").unwrap_or(1);
    Inputs { name, seeds: first..first.saturating_add(count), first }
}

#[expect(clippy::disallowed_methods, reason = "a test has no invocation, and nothing ships this")]
fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|error| panic!("{name}={value}: {error}")))
}

impl Inputs {
    /// How many inputs there are. Of a few nobody can say how many should come to what.
    pub(crate) fn total(&self) -> usize {
        usize::try_from(self.seeds.end - self.first).unwrap()
    }
}

impl Iterator for Inputs {
    type Item = (u64, Random);

    fn next(&mut self) -> Option<(u64, Random)> {
        self.seeds.next().map(|seed| (seed, Random::new(seed)))
    }
}

/// What scripts/fuzz.sh adds up. A test that fails has its seed named, whatever it says itself.
impl Drop for Inputs {
    #[expect(clippy::print_stderr, reason = "it is for whoever runs the tests")]
    fn drop(&mut self) {
        let Inputs { name, seeds, first } = self;
        let count = seeds.start - *first;
        if std::thread::panicking() {
            eprintln!("fuzz {name}: failed at seed {}", seeds.start.saturating_sub(1));
        } else {
            eprintln!("fuzz {name}: {count} inputs, seed {first}");
        }
    }
}

#[test]
fn numbers_are_the_same_for_a_seed_and_others_for_the_next() {
    let numbers = |seed| {
        let mut random = Random::new(seed);
        [random.next(), random.next(), random.next()]
    };
    let all: std::collections::HashSet<_> = (0..10_000).flat_map(numbers).collect();
    assert_eq!((numbers(7), all.len()), (numbers(7), 30_000));
    let mut zero = Random::new(u64::MAX);
    assert_ne!((zero.next(), zero.next()), (0, 0));
}
