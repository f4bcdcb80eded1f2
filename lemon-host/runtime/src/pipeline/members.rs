//! The members of an object that is known to be JSON, without a look at what is in them.

use crate::schema::text::string_end;

/// Goes through an object's members: the name of each as it is written between its quotes, and its value.
pub(super) struct Members<'a> {
    json: &'a str,
    at: usize,
}

impl<'a> Members<'a> {
    /// The members of a value; none if it is no object.
    pub(super) fn of(json: &'a str) -> Option<Self> {
        json.starts_with('{').then_some(Self { json, at: 1 })
    }

    /// Moves on to the next byte that is neither white space nor between members.
    fn skip(&mut self) -> Option<u8> {
        let rest = &self.json.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':')).count();
        self.json.as_bytes().get(self.at).copied()
    }

    fn past_value(&self, first: u8) -> usize {
        let bytes = self.json.as_bytes();
        match first {
            b'"' => string_end(bytes, self.at),
            b'{' | b'[' => past_container(bytes, self.at),
            _ => {
                let ends = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b'}');
                bytes[self.at..].iter().position(ends).map_or(bytes.len(), |length| self.at + length)
            }
        }
    }
}

/// The end of the object or array that begins at a bracket.
fn past_container(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        if self.skip()? != b'"' {
            return None;
        }
        let start = self.at;
        self.at = string_end(self.json.as_bytes(), start);
        let name = self.json.get(start + 1..self.at - 1)?;
        let first = self.skip()?;
        let start = self.at;
        self.at = self.past_value(first);
        Some((name, self.json.get(start..self.at)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_wherever_white_space_and_brackets_stand() {
        let json = r#"{ "a" : [1, "]\"}", {"b": {}}] ,"c":-1.5e3,"d\"":"x:,}" , "":null,"e":{"f":[ ]}
 , "g":true }"#;
        let members: Vec<_> = Members::of(json).unwrap().collect();
        let expected = [
            ("a", r#"[1, "]\"}", {"b": {}}]"#),
            ("c", "-1.5e3"),
            ("d\\\"", r#""x:,}""#),
            ("", "null"),
            ("e", r#"{"f":[ ]}"#),
            ("g", "true"),
        ];
        assert_eq!(members, expected);
        assert!(Members::of("[1]").is_none());
        assert_eq!(Members::of("{ }").unwrap().count(), 0);
    }
}
