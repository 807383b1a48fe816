//! What RTL and Verilator's runtime said, made into an error with time, instance path and message.
//!
//! Verilator prints a failed assertion, `$error` and `$fatal` as a line of its own form and then calls the stop hook, which
//! has no instance path; so the line before a stop is read:
//! `[4000] %Error: fifo.sv:12: Assertion failed in TOP.onic_shell.fifo.Full_A: 'assert' failed.` The time is ours.

use crate::ffi::bridge::EventInfo;

/// How a run was stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopKind {
    /// A failed assertion, or `$error`. The design goes on.
    Assertion,
    /// `$fatal`. The design goes on if evaluated further, since it could not be held where it stood.
    RtlFatal,
    /// `$stop`.
    Stop,
    /// `$finish`.
    Finish,
    /// Verilator's runtime gave up, as when combinational logic does not settle. The top is dead.
    Fatal,
}

/// RTL stopped the run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{}: {message} ({location})", kind.name(), path.as_ref().map(|p| format!(" in {p}")).unwrap_or_default())]
pub struct Stopped {
    /// How.
    pub kind: StopKind,
    /// When.
    pub time_ps: u64,
    /// Instance path down to the assertion's name, where Verilator gives it: `$stop` and `$finish` come without.
    pub path: Option<String>,
    /// What was said.
    pub message: String,
    /// Source file and line, the file as its list names it.
    pub location: String,
}

impl StopKind {
    fn name(self) -> &'static str {
        match self {
            StopKind::Assertion => "assertion failed",
            StopKind::RtlFatal => "$fatal",
            StopKind::Stop => "$stop",
            StopKind::Finish => "$finish",
            StopKind::Fatal => "Verilator gave up",
        }
    }
}

/// Numbers of `onic::EventKind`.
mod kind {
    pub const PRINT: u32 = 0;
    pub const STOP: u32 = 1;
    pub const FATAL: u32 = 2;
    pub const FINISH: u32 = 3;
}

/// A batch of events: the first that stops, and all that was printed.
#[derive(Default)]
pub(super) struct Digest {
    pub first: Option<Stopped>,
    pub log: Vec<String>,
}

pub(super) fn digest(events: Vec<EventInfo>) -> Digest {
    let mut digest = Digest::default();
    for event in events {
        if event.kind == kind::PRINT {
            digest.log.push(event.text);
            continue;
        }
        let location = format!("{}:{}", event.file, event.line);
        let stopped = match event.kind {
            kind::STOP => stop(&event, digest.log.last().map(String::as_str), location),
            kind::FINISH => plain(StopKind::Finish, &event, "the RTL ended the simulation", location),
            kind::FATAL => plain(StopKind::Fatal, &event, &event.text, location),
            _ => {
                digest.log.push(format!("%Warning: {location}: {}", event.text));
                continue;
            }
        };
        digest.first.get_or_insert(stopped);
    }
    digest
}

fn plain(kind: StopKind, event: &EventInfo, message: &str, location: String) -> Stopped {
    Stopped { kind, time_ps: event.time_ps, path: None, message: message.to_string(), location }
}

/// A stop with the line that was printed before it, if that line is its cause: it names the same source line.
fn stop(event: &EventInfo, line: Option<&str>, location: String) -> Stopped {
    let cause = line.and_then(parse_line).filter(|cause| same_place(cause.location, &location));
    match cause {
        Some(cause) => Stopped {
            kind: cause.kind,
            time_ps: event.time_ps,
            path: Some(cause.path.to_string()),
            message: cause.message.to_string(),
            location,
        },
        None => plain(StopKind::Stop, event, "the RTL asked to stop", location),
    }
}

/// The printed line has the file's last name only, the hook all of its path.
fn same_place(printed: &str, location: &str) -> bool {
    location == printed || location.ends_with(&format!("/{printed}"))
}

struct Line<'a> {
    kind: StopKind,
    location: &'a str,
    path: &'a str,
    message: &'a str,
}

fn parse_line(line: &str) -> Option<Line<'_>> {
    let (_, rest) = line.split_once("] %")?;
    let (severity, rest) = rest.split_once(": ")?;
    let kind = match severity {
        "Error" => StopKind::Assertion,
        "Fatal" => StopKind::RtlFatal,
        _ => return None,
    };
    let (location, rest) = rest.split_once(": ")?;
    let rest = rest.strip_prefix("Assertion failed in ").unwrap_or(rest);
    let (path, message) = rest.split_once(": ").unwrap_or((rest.trim_end_matches(':'), ""));
    let path = path.strip_prefix("TOP.").unwrap_or(path);
    // RTL that is used to other simulators says `%m` itself.
    let message = message.strip_prefix("TOP.").unwrap_or(message);
    let message = message.strip_prefix(path).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(message);
    Some(Line { kind, location, path, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_give_path_and_message() {
        let line = parse_line("[4000] %Error: fifo.sv:12: Assertion failed in TOP.shell.fifo.Full_A: wrote: 3")
            .expect("parses");
        assert_eq!((line.kind, line.location), (StopKind::Assertion, "fifo.sv:12"));
        assert_eq!((line.path, line.message), ("shell.fifo.Full_A", "wrote: 3"));
        let line = parse_line("[0] %Fatal: a.sv:1: Assertion failed in TOP.a").expect("parses");
        assert_eq!((line.kind, line.path, line.message), (StopKind::RtlFatal, "TOP.a".trim_start_matches("TOP."), ""));
        let line = parse_line("[0] %Error: a.sv:1: Assertion failed in TOP.a.B_A: TOP.a.B_A: no").expect("parses");
        assert_eq!((line.path, line.message), ("a.B_A", "no"));
        assert!(parse_line("hello").is_none());
        assert!(parse_line("[0] %Warning: a.sv:1: TOP.a: x").is_none());
    }

    #[test]
    fn a_stop_takes_only_its_own_line() {
        let event =
            |kind, text: &str, line| EventInfo { kind, line, time_ps: 9, file: "rtl/a.sv".into(), text: text.into() };
        let print = event(kind::PRINT, "[9] %Error: a.sv:7: Assertion failed in TOP.x.A: no", 0);
        let digest_of =
            |line| digest(vec![event(kind::PRINT, &print.text, 0), event(kind::STOP, "", line)]).first.expect("a stop");
        assert_eq!(digest_of(7).path.as_deref(), Some("x.A"));
        assert_eq!((digest_of(8).kind, digest_of(8).path), (StopKind::Stop, None));
    }
}
