//! A line of the console into commands: words, quotes, comments, `;`, `&`, `!` and `repeat`.
//!
//! ```text
//!   line    = [ command { ";" command } ] [ "#" comment ]
//!   command = [ "!" ] word { word } [ "&" ]        "!": it must fail; "&": in the background
//!           | "repeat" N line                      N times all the rest of the line
//! ```
//!
//! Quotes are the shell's: nothing is special between single ones, a backslash escapes the next character between
//! double ones and outside. There are no variables and no patterns.

/// One command of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Statement {
    /// A command with its words; at least one.
    Run {
        /// As typed, for messages.
        text: String,
        /// The words, quotes gone.
        words: Vec<String>,
        /// `&`: in the background.
        background: bool,
        /// `!`: it must fail.
        negated: bool,
    },
    /// `repeat N …`: the rest of the line, N times.
    Repeat {
        /// How often.
        times: u64,
        /// What.
        body: Vec<Statement>,
    },
}

/// A line that is no command.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseError {
    /// A quote without its other half.
    #[error("the {quote} at character {position} is never closed")]
    OpenQuote {
        /// Which.
        quote: char,
        /// Its position, counted from 1.
        position: usize,
    },
    /// A backslash at the end of the line.
    #[error("there is nothing after the backslash at the end")]
    OpenEscape,
    /// `&` where no command stands before it, or something after it.
    #[error("`&` stands at the end of a command")]
    Ampersand,
    /// `!` without a command.
    #[error("`!` stands before a command")]
    Negation,
    /// `repeat` without a number or without anything to repeat.
    #[error("repeat takes a number of times and what to repeat: repeat 100 down; wait 2us; up")]
    Repeat,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Token {
    Word { text: String, quoted: bool },
    Semicolon,
    Ampersand,
}

/// A token and where it lies in the line, in bytes.
struct Placed {
    token: Token,
    start: usize,
    end: usize,
}

/// Parse one line. An empty line, or one of only a comment, has no commands.
///
/// # Errors
/// [`ParseError`]; nothing of the line is run then.
pub fn parse(line: &str) -> Result<Vec<Statement>, ParseError> {
    statements(line, &tokens(line)?)
}

fn statements(line: &str, tokens: &[Placed]) -> Result<Vec<Statement>, ParseError> {
    let mut list = Vec::new();
    let mut rest = tokens;
    while let Some((first, after)) = rest.split_first() {
        if first.token == Token::Semicolon {
            rest = after;
            continue;
        }
        if is_bare(first, "repeat") {
            list.push(repeat(line, after)?);
            break;
        }
        let end = rest.iter().position(|placed| placed.token == Token::Semicolon).unwrap_or(rest.len());
        list.push(command(line, &rest[..end])?);
        rest = &rest[end..];
    }
    Ok(list)
}

fn repeat(line: &str, tokens: &[Placed]) -> Result<Statement, ParseError> {
    let Some((Placed { token: Token::Word { text, .. }, .. }, rest)) = tokens.split_first() else {
        return Err(ParseError::Repeat);
    };
    let times = text.parse().map_err(|_| ParseError::Repeat)?;
    let body = statements(line, rest)?;
    if body.is_empty() { Err(ParseError::Repeat) } else { Ok(Statement::Repeat { times, body }) }
}

/// One command, which has at least one token.
fn command(line: &str, tokens: &[Placed]) -> Result<Statement, ParseError> {
    let negated = tokens.first().is_some_and(|first| is_bare(first, "!"));
    let tokens = if negated { &tokens[1..] } else { tokens };
    let background = tokens.last().is_some_and(|last| last.token == Token::Ampersand);
    let words = if background { &tokens[..tokens.len() - 1] } else { tokens };
    let (Some(first), Some(last)) = (words.first(), words.last()) else {
        return Err(if background { ParseError::Ampersand } else { ParseError::Negation });
    };
    let text = line[first.start..last.end].to_string();
    let words = words.iter().map(|placed| match &placed.token {
        Token::Word { text, .. } => Ok(text.clone()),
        _ => Err(ParseError::Ampersand),
    });
    Ok(Statement::Run { text, words: words.collect::<Result<_, _>>()?, background, negated })
}

fn is_bare(placed: &Placed, word: &str) -> bool {
    matches!(&placed.token, Token::Word { text, quoted: false } if text == word)
}

fn tokens(line: &str) -> Result<Vec<Placed>, ParseError> {
    let mut list = Vec::new();
    let mut at = 0;
    while let Some(next) = line[at..].chars().next() {
        let start = at;
        let token = match next {
            '#' => break,
            ';' => Token::Semicolon,
            '&' => Token::Ampersand,
            blank if blank.is_whitespace() => {
                at += blank.len_utf8();
                continue;
            }
            _ => {
                let (token, len) = word(line, at)?;
                list.push(Placed { token, start, end: at + len });
                at += len;
                continue;
            }
        };
        at += 1;
        list.push(Placed { token, start, end: at });
    }
    Ok(list)
}

/// The word at `start`, and how many bytes of the line it takes.
fn word(line: &str, start: usize) -> Result<(Token, usize), ParseError> {
    let mut text = String::new();
    let mut quoted = false;
    let mut chars = line[start..].char_indices();
    while let Some((at, next)) = chars.next() {
        match next {
            '\'' | '"' => {
                quoted = true;
                let position = line[..start + at].chars().count() + 1;
                quotation(&mut chars, next, &mut text).ok_or(ParseError::OpenQuote { quote: next, position })?;
            }
            '\\' => {
                quoted = true;
                text.push(chars.next().ok_or(ParseError::OpenEscape)?.1);
            }
            ';' | '&' => return Ok((Token::Word { text, quoted }, at)),
            blank if blank.is_whitespace() => return Ok((Token::Word { text, quoted }, at)),
            other => text.push(other),
        }
    }
    Ok((Token::Word { text, quoted }, line.len() - start))
}

/// What stands up to the closing quote; `None` without one.
fn quotation(chars: &mut std::str::CharIndices<'_>, quote: char, text: &mut String) -> Option<()> {
    loop {
        match chars.next()?.1 {
            end if end == quote => return Some(()),
            '\\' if quote == '"' => text.push(chars.next()?.1),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str, words: &[&str]) -> Statement {
        let words = words.iter().map(ToString::to_string).collect();
        Statement::Run { text: text.into(), words, background: false, negated: false }
    }

    #[test]
    fn a_line_is_words() {
        assert_eq!(parse("  up  onic0\t"), Ok(vec![run("up  onic0", &["up", "onic0"])]));
        assert_eq!(parse(""), Ok(vec![]));
    }

    #[test]
    fn a_comment_begins_where_a_word_could() {
        assert_eq!(parse("  # all of it"), Ok(vec![]));
        assert_eq!(parse("replay a#1.pcap # b"), Ok(vec![run("replay a#1.pcap", &["replay", "a#1.pcap"])]));
    }

    #[test]
    fn quotes_are_the_shells() {
        let words = |line| match parse(line).expect(line).remove(0) {
            Statement::Run { words, .. } => words,
            other => panic!("{other:?}"),
        };
        assert_eq!(words(r#"replay 'a b;&#.pcap'@1"#), ["replay", "a b;&#.pcap@1"]);
        assert_eq!(words(r#"x "a\"b" a\ b '' "#), ["x", "a\"b", "a b", ""]);
        assert_eq!(parse("x 'a"), Err(ParseError::OpenQuote { quote: '\'', position: 3 }));
        assert_eq!(parse("x a\\"), Err(ParseError::OpenEscape));
    }

    #[test]
    fn semicolons_part_commands_and_may_be_idle() {
        assert_eq!(parse("up;; down ;"), Ok(vec![run("up", &["up"]), run("down", &["down"])]));
    }

    #[test]
    fn an_ampersand_sends_its_command_to_the_background() {
        let Statement::Run { text, background: true, .. } = &parse("replay a &; up").expect("two")[0] else { panic!() };
        assert_eq!(text, "replay a");
        for line in ["&", "a & b", "a && b", "! &"] {
            assert_eq!(parse(line), Err(ParseError::Ampersand), "{line}");
        }
    }

    #[test]
    fn a_bang_wants_a_failure() {
        assert!(matches!(&parse("! up").expect("one")[..], [Statement::Run { negated: true, .. }]));
        assert_eq!(parse("!"), Err(ParseError::Negation));
        assert_eq!(parse("'!' up"), Ok(vec![run("'!' up", &["!", "up"])]));
    }

    #[test]
    fn repeat_takes_the_rest_of_the_line() {
        let body = vec![run("down", &["down"]), run("up", &["up"])];
        assert_eq!(parse("repeat 100 down; up"), Ok(vec![Statement::Repeat { times: 100, body }]));
        for line in ["repeat", "repeat 3", "repeat x up", "repeat 3 # up", "repeat -1 up"] {
            assert_eq!(parse(line), Err(ParseError::Repeat), "{line}");
        }
    }

    proptest::proptest! {
        /// Whatever is typed, parsing ends without a panic, and words that were quoted come out as they went in.
        #[test]
        fn any_line_ends(line in "\\PC{0,60}") {
            let _ = parse(&line);
        }

        #[test]
        fn single_quotes_keep_everything(words in proptest::collection::vec("[^'\\n]{0,12}", 1..6)) {
            let line = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
            let Statement::Run { words: got, .. } = parse(&line).expect("quoted").remove(0) else { panic!() };
            proptest::prop_assert_eq!(got, words);
        }
    }
}
