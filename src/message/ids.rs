//! Ids of our own making.

/// Nine letters and digits that stand for this text: the form that every endpoint takes, Mistral's
/// too. The same text always has the same id, in every release, since a session that goes on sends
/// the bytes that were sent before.
pub(crate) fn short_id(text: &str) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    // FNV-1a, with its bits mixed at the end as SplitMix64 does it.
    let mut hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    let mut id = String::with_capacity(9);
    for _ in 0..9 {
        let digit = usize::try_from(hash % 62).unwrap_or_default();
        id.push(char::from(DIGITS[digit]));
        hash /= 62;
    }
    id
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_id_is_nine_letters_or_digits_and_stays_what_it_is() {
        assert_eq!(short_id(""), "5nGVpMeG0");
        assert_eq!(short_id("call|1"), "gW1WwrZtq");
        let ids: HashSet<_> = (0..10_000).map(|n| short_id(&n.to_string())).collect();
        assert_eq!(ids.len(), 10_000);
        let fits = |id: &String| id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric());
        assert!(ids.iter().all(fits));
    }
}
