//! RFC 9285: bytes in the 45 characters that a QR code packs two into eleven bits.

const ALPHABET: &[u8; 45] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:";

/// Two bytes are three characters, the least of them first; a last byte alone is two.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(2) * 3);
    for pair in bytes.chunks(2) {
        let mut value = pair.iter().fold(0u32, |value, byte| value << 8 | u32::from(*byte));
        for _ in 0..=pair.len() {
            text.push(char::from(ALPHABET[(value % 45) as usize]));
            value /= 45;
        }
    }
    text
}

/// The bytes of a text. Each has one text: `None` for a character outside the alphabet, for a length that no bytes have, and for
/// more than its bytes can hold.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 3 * 2 + 1);
    for group in text.as_bytes().chunks(3) {
        let mut value = 0;
        for letter in group.iter().rev() {
            value = value * 45 + ALPHABET.iter().position(|known| known == letter)?;
        }
        match group.len() {
            3 => bytes.extend(u16::try_from(value).ok()?.to_be_bytes()),
            2 => bytes.push(u8::try_from(value).ok()?),
            _ => return None,
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard() {
        for (bytes, text) in [
            ("", ""),
            ("AB", "BB8"),
            ("Hello!!", "%69 VD92EX0"),
            ("base-45", "UJCLQE7W581"),
            ("ietf!", "QED8WEX0"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_no_bytes_are_written_as_is_refused() {
        // Lower case, a character outside, one left over, and the first values over two bytes and over one.
        for stranger in ["bb8", "BB_", "ü00", "BB8A", "A", "GGW", ":::", "V5", "::"] {
            assert_eq!(decode(stranger), None, "{stranger}");
        }
        assert_eq!(decode("FGW"), Some(vec![0xff, 0xff]));
        assert_eq!(decode("U5"), Some(vec![0xff]));
    }

    #[test]
    fn every_byte_and_every_pair_comes_back() {
        for value in 0..=u16::MAX {
            let pair = value.to_be_bytes();
            assert_eq!(decode(&encode(&pair)).as_deref(), Some(&pair[..]));
            assert_eq!(decode(&encode(&pair[1..])).as_deref(), Some(&pair[1..]));
        }
    }
}
