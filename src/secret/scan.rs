//! Finds secrets in a text: one pass, whatever their number and whatever stands in the text.
//!
//! The search is that of Aho and Corasick. It runs over the bytes as they are, and where there are
//! escapes also over what they stand for, once and twice decoded: `\/` and `\u0041` of JSON, and
//! `%41` of a URL.

use std::collections::VecDeque;

/// A secret that was found: where, and the number of its label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) label: usize,
    /// The length of the longest secret in it, which gives the label.
    length: usize,
}

/// What a text holds.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// In order; two that overlap are one.
    pub(super) found: Vec<Found>,
    /// Where a secret may begin that goes on behind the text; the end of the text if none does.
    pub(super) open: usize,
}

const ROOT: usize = 0;

/// A tree of secrets, byte by byte. A node is the text that leads to it.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    /// The children of the root by their byte; the root where there is none.
    first: Vec<usize>,
    longest: usize,
}

#[derive(Debug, Default)]
struct Node {
    byte: u8,
    depth: usize,
    /// The first child, and the next one of the same parent; the root for none.
    child: usize,
    sibling: usize,
    /// The longest end of this text that is a node itself.
    fallback: usize,
    /// The longest secret that this text ends in: its length, 0 for none, and its label.
    length: usize,
    label: usize,
}

impl Tree {
    /// Of secrets with the numbers of their labels. None of them is empty.
    pub(super) fn new<'a>(secrets: impl Iterator<Item = (&'a str, usize)>) -> Tree {
        let mut tree = Tree { nodes: vec![Node::default()], first: vec![ROOT; 256], longest: 0 };
        for (secret, label) in secrets {
            let mut node = ROOT;
            for &byte in secret.as_bytes() {
                node = tree.child(node, byte).unwrap_or_else(|| tree.add(node, byte));
            }
            tree.longest = tree.longest.max(secret.len());
            // The first label counts where two secrets are the same.
            if tree.nodes[node].length == 0 {
                tree.nodes[node].length = secret.len();
                tree.nodes[node].label = label;
            }
        }
        tree.link();
        tree
    }

    fn add(&mut self, parent: usize, byte: u8) -> usize {
        let node = self.nodes.len();
        let Node { depth, child, .. } = self.nodes[parent];
        self.nodes.push(Node { byte, depth: depth + 1, sibling: child, ..Node::default() });
        self.nodes[parent].child = node;
        if parent == ROOT {
            self.first[usize::from(byte)] = node;
        }
        node
    }

    fn child(&self, parent: usize, byte: u8) -> Option<usize> {
        if parent == ROOT {
            let child = self.first[usize::from(byte)];
            return (child != ROOT).then_some(child);
        }
        let mut child = self.nodes[parent].child;
        while child != ROOT && self.nodes[child].byte != byte {
            child = self.nodes[child].sibling;
        }
        (child != ROOT).then_some(child)
    }

    /// Sets the fallbacks, shorter texts first.
    fn link(&mut self) {
        let mut queue = VecDeque::from([ROOT]);
        while let Some(parent) = queue.pop_front() {
            let mut node = self.nodes[parent].child;
            while node != ROOT {
                if parent != ROOT {
                    let byte = self.nodes[node].byte;
                    let fallback = self.step(self.nodes[parent].fallback, byte);
                    let Node { length, label, .. } = self.nodes[fallback];
                    let linked = &mut self.nodes[node];
                    linked.fallback = fallback;
                    if linked.length == 0 {
                        (linked.length, linked.label) = (length, label);
                    }
                }
                queue.push_back(node);
                node = self.nodes[node].sibling;
            }
        }
    }

    fn step(&self, mut node: usize, byte: u8) -> usize {
        loop {
            match self.child(node, byte) {
                Some(child) => return child,
                None if node == ROOT => return ROOT,
                None => node = self.nodes[node].fallback,
            }
        }
    }

    /// The length of the longest end of this text that a secret may go on from.
    fn open(&self, mut node: usize) -> usize {
        while node != ROOT && self.nodes[node].child == ROOT {
            node = self.nodes[node].fallback;
        }
        self.nodes[node].depth
    }

    /// Everything that there is in `text`.
    pub(super) fn find(&self, text: &[u8]) -> Findings {
        let mut findings = Findings { found: Vec::new(), open: text.len() };
        self.scan(raw(text), text.len(), &mut findings);
        if !text.contains(&b'\\') && !text.contains(&b'%') {
            return findings;
        }
        for decoded in [1, 2] {
            let mut more = Findings { found: Vec::new(), open: text.len() };
            match decoded {
                1 => self.scan(Decoded::new(raw(text)), text.len(), &mut more),
                _ => self.scan(Decoded::new(Decoded::new(raw(text))), text.len(), &mut more),
            }
            findings.open = findings.open.min(more.open);
            if more.found != findings.found {
                findings.found.append(&mut more.found);
                findings.found.sort_by_key(|found| (found.start, found.end));
                let all = std::mem::take(&mut findings.found);
                all.into_iter().for_each(|found| add(&mut findings.found, found));
            }
        }
        findings
    }

    fn scan(&self, tokens: impl Iterator<Item = Token>, len: usize, findings: &mut Findings) {
        // Where each of the last bytes begins in the text.
        let mut starts = vec![0; self.longest.min(len) + 1];
        let room = starts.len();
        let (mut node, mut count) = (ROOT, 0);
        for token in tokens {
            if token.is_unfinished {
                let depth = self.open(node);
                let start = if depth == 0 { token.start } else { starts[(count - depth) % room] };
                findings.open = findings.open.min(start);
            }
            starts[count % room] = token.start;
            count += 1;
            node = self.step(node, token.byte);
            let Node { length, label, .. } = self.nodes[node];
            if length > 0 {
                let start = starts[(count - length) % room];
                add(&mut findings.found, Found { start, end: token.end, label, length });
            }
        }
        let depth = self.open(node);
        if depth > 0 {
            findings.open = findings.open.min(starts[(count - depth) % room]);
        }
    }
}

/// Adds one that does not end before the others.
fn add(all: &mut Vec<Found>, mut found: Found) {
    while let Some(last) = all.pop_if(|last| last.end > found.start) {
        let (label, length) = match last.length > found.length {
            true => (last.label, last.length),
            false => (found.label, found.length),
        };
        let (start, end) = (last.start.min(found.start), last.end.max(found.end));
        found = Found { start, end, label, length };
    }
    all.push(found);
}

/// A byte, and what it is in the text.
#[derive(Clone, Copy)]
struct Token {
    byte: u8,
    start: usize,
    end: usize,
    /// Whether an escape begins here that the text ends in the middle of.
    is_unfinished: bool,
}

fn raw(text: &[u8]) -> impl Iterator<Item = Token> {
    let bytes = text.iter().enumerate();
    bytes.map(|(start, &byte)| Token { byte, start, end: start + 1, is_unfinished: false })
}

/// Bytes with each escape replaced by what it stands for.
struct Decoded<I> {
    inner: I,
    /// What was read and not yet looked at.
    ahead: VecDeque<Token>,
    /// What was decoded and not yet handed out.
    ready: VecDeque<Token>,
}

/// What the first bytes of a text are.
enum Escape {
    /// So many of them stand for this character.
    Whole(usize, char),
    /// So many of them stand for this byte.
    Byte(usize, u8),
    Unfinished,
    No,
}

impl<I: Iterator<Item = Token>> Decoded<I> {
    fn new(inner: I) -> Decoded<I> {
        Decoded { inner, ahead: VecDeque::new(), ready: VecDeque::new() }
    }

    fn escape(&self) -> Escape {
        let byte = |index: usize| self.ahead.get(index).map(|token| token.byte);
        let hex = |from: usize, to: usize| {
            let mut value = 0;
            for index in from..to {
                let Some(byte) = byte(index) else { return Err(Escape::Unfinished) };
                let digit = char::from(byte).to_digit(16).ok_or(Escape::No)?;
                value = value * 16 + digit;
            }
            Ok(value)
        };
        let escape = match (byte(0), byte(1)) {
            (Some(b'%'), _) => {
                hex(1, 3).map(|value| Escape::Byte(3, u8::try_from(value).unwrap_or_default()))
            }
            (_, None) => Err(Escape::Unfinished),
            (_, Some(b'u')) => hex(2, 6)
                .map(|value| char::from_u32(value).map_or(Escape::No, |c| Escape::Whole(6, c))),
            (_, Some(byte @ (b'"' | b'\\' | b'/'))) => Ok(Escape::Byte(2, byte)),
            (_, Some(b'n')) => Ok(Escape::Byte(2, b'\n')),
            (_, Some(b'r')) => Ok(Escape::Byte(2, b'\r')),
            (_, Some(b't')) => Ok(Escape::Byte(2, b'\t')),
            _ => Err(Escape::No),
        };
        escape.unwrap_or_else(|why| why)
    }

    fn decode(&mut self, taken: usize, bytes: &[u8]) {
        let (start, end) = (self.ahead[0].start, self.ahead[taken - 1].end);
        self.ahead.drain(..taken);
        let tokens = bytes.iter().map(|&byte| Token { byte, start, end, is_unfinished: false });
        self.ready.extend(tokens);
    }
}

impl<I: Iterator<Item = Token>> Iterator for Decoded<I> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        if let Some(token) = self.ready.pop_front() {
            return Some(token);
        }
        if self.ahead.is_empty() {
            let token = self.inner.next()?;
            if !matches!(token.byte, b'\\' | b'%') {
                return Some(token);
            }
            self.ahead.push_back(token);
        }
        if !matches!(self.ahead[0].byte, b'\\' | b'%') {
            return self.ahead.pop_front();
        }
        while self.ahead.len() < 6
            && let Some(token) = self.inner.next()
        {
            self.ahead.push_back(token);
        }
        match self.escape() {
            Escape::Whole(taken, character) => {
                self.decode(taken, character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Escape::Byte(taken, byte) => self.decode(taken, &[byte]),
            Escape::Unfinished => {
                let token = self.ahead.pop_front()?;
                return Some(Token { is_unfinished: true, ..token });
            }
            Escape::No => return self.ahead.pop_front(),
        }
        self.ready.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where each secret lies, with its number, and where the text is open.
    fn find(secrets: &[&str], text: &str) -> (Vec<(usize, usize, usize)>, usize) {
        let tree = Tree::new(secrets.iter().enumerate().map(|(index, secret)| (*secret, index)));
        let Findings { found, open } = tree.find(text.as_bytes());
        (found.iter().map(|found| (found.start, found.end, found.label)).collect(), open)
    }

    #[test]
    fn the_longest_is_found_and_what_overlaps_is_one() {
        assert_eq!(find(&["abcd", "abcdef"], "xabcdefx").0, [(1, 7, 1)]);
        assert_eq!(find(&["abcdef", "cd"], "xabcdefcd").0, [(1, 7, 0), (7, 9, 1)]);
        assert_eq!(find(&["abcd", "cdefg"], "xabcdefgx").0, [(1, 8, 1)]);
        assert_eq!(find(&["aaaa"], "aaaaaa").0, [(0, 6, 0)]);
        assert_eq!(find(&["bcd", "abce"], "abcd").0, [(1, 4, 0)]);
        assert_eq!(find(&["abcd"], "abc").0, []);
    }

    #[test]
    fn a_text_is_open_where_a_secret_may_go_on() {
        assert_eq!(find(&["abcd", "abcdef"], "xabcd"), (vec![(1, 5, 0)], 1));
        assert_eq!(find(&["abcd", "cdef"], "xabcd"), (vec![(1, 5, 0)], 3));
        assert_eq!(find(&["abcd"], "xabcd").1, 5);
        assert_eq!(find(&["abcd"], "xabc").1, 1);
        for text in ["xab\\", "xab\\u", "xab\\u006", "xab%", "xab%6", "xa\\u0062%", "xab\\\\"] {
            assert_eq!(find(&["abcd"], text).1, 1, "{text}");
        }
        assert_eq!(find(&["abcd"], "x\\").1, 1);
    }

    #[test]
    fn an_escape_is_what_it_stands_for() {
        for text in [
            "a/b\"\u{e9}c",
            "a\\/b\\\"\\u00E9c",
            "a%2Fb%22%c3%a9c",
            "%61%2fb\\u0022\\u00e9%63",
            "a\\\\\\/b\\\\\\\"\u{e9}c",
            "a\\\\u002fb\\\"\u{e9}c",
            "a%252Fb%2522\u{e9}c",
        ] {
            let text = format!("x {text} x");
            assert_eq!(find(&["a/b\"\u{e9}c"], &text).0, [(2, text.len() - 2, 0)], "{text}");
        }
        // As they are they count too.
        assert_eq!(find(&["p%40ss"], "p%40ss").0, [(0, 6, 0)]);
        assert_eq!(find(&["a\\nb"], "a\\nb").0, [(0, 4, 0)]);
        for text in ["a%4", "a%zzss", "a\\u00zz", "\\ud800", "\\", "%"] {
            assert_eq!(find(&["p@ss"], text).0, [], "{text}");
        }
    }

    /// By the definition: every place of every secret, and then what overlaps joined.
    #[test]
    fn it_finds_what_a_plain_search_finds() {
        let mut seed: u64 = 7;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..2_000 {
            let mut word = |max: u64| -> String {
                let length = 1 + random(max);
                (0..length).map(|_| if random(2) == 0 { 'a' } else { 'b' }).collect()
            };
            let secrets: Vec<String> = (0..3).map(|_| word(5)).collect();
            let text = word(20);
            let mut covered = vec![false; text.len()];
            for secret in &secrets {
                for start in 0..text.len() {
                    if text[start..].starts_with(secret) {
                        covered[start..start + secret.len()].fill(true);
                    }
                }
            }
            let words: Vec<&str> = secrets.iter().map(String::as_str).collect();
            let (found, open) = find(&words, &text);
            let mut seen = vec![false; text.len()];
            for (start, end, _) in found {
                seen[start..end].fill(true);
            }
            assert_eq!(seen, covered, "{secrets:?} in {text}");
            let goes_on = |from: &usize| {
                secrets.iter().any(|s| s.len() > text.len() - from && s.starts_with(&text[*from..]))
            };
            let expected = (0..text.len()).find(goes_on).unwrap_or(text.len());
            assert_eq!(open, expected, "{secrets:?} in {text}");
        }
    }

    #[test]
    fn many_secrets_and_a_long_text_take_one_pass() {
        let secrets: Vec<String> = (0..50).map(|n| format!("{}{n:02}", "a".repeat(200))).collect();
        let words: Vec<&str> = secrets.iter().map(String::as_str).collect();
        let text = "a".repeat(2 << 20);
        let begun = std::time::Instant::now();
        assert_eq!(find(&words, &text).0, []);
        assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    }
}
