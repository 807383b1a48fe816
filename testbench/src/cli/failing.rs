//! What happens after a run has failed: the smallest input, the folder, the hints.

use std::path::Path;

use super::progress::Progress;
use super::repro::Repro;
use crate::failure::{self, Contents, FOLDER};
use crate::golden::Loaded;
use crate::reduce::{Budget, Reduced};
use crate::run::InFrame;
use crate::session::{Session, Verdict};

/// A run that failed, and how it was asked for.
pub(super) struct Failing<'a> {
    pub(super) session: &'a Session<'a>,
    pub(super) verdict: &'a Verdict,
    /// The command for the whole input.
    pub(super) whole: Repro,
    /// The command for another input, which [`Failing::keep`] names.
    pub(super) other: Repro,
    /// The whole input came from standard input.
    pub(super) from_stdin: bool,
}

/// What [`Failing::look`] found out.
pub(super) struct Found {
    reduced: Option<Reduced>,
    /// The command that fails, as short as it can be.
    pub(super) repro: Repro,
}

impl Found {
    /// The command for the whole input, for commands that take no part of it.
    pub(super) fn of_whole_input(self, failing: &Failing<'_>) -> Found {
        Found { repro: failing.whole.clone(), ..self }
    }
}

impl Failing<'_> {
    /// Make the failing input small, and the command that fails short.
    pub(super) fn look(&self, progress: &mut Progress) -> Found {
        let runs = Budget::FAILURE.runs;
        let reduced = failure::reduce(self.session, self.verdict, Budget::FAILURE, &mut |run, _| {
            progress.at("reducing", run, runs)
        });
        progress.finish();
        let single = match reduced.as_ref().map(|reduced| &reduced.frames[..]) {
            Some([frame]) if self.session.wire.len() > 1 => Some(frame),
            _ => None,
        };
        let mut repro = if self.from_stdin {
            // Standard input is gone: the folder keeps what came from it.
            let kept = failure::input_names(&Path::new(FOLDER).join("input.pcapng"), self.session.wire);
            self.whole.clone().without(&["only", "count"]).on(kept)
        } else {
            self.whole.clone()
        };
        if let Some(frame) = single {
            repro = repro.set("only", self.number(frame).to_string());
        }
        Found { reduced, repro }
    }

    /// How the command that fails counts a frame: kept captures hold the frames that were sent, port after port.
    fn number(&self, frame: &InFrame) -> u64 {
        if !self.from_stdin {
            return frame.index;
        }
        let mut order: Vec<&InFrame> = self.session.wire.iter().collect();
        order.sort_by_key(|frame| frame.port);
        order.iter().position(|other| other.index == frame.index).map_or(0, |at| at as u64)
    }

    /// Fill the folder, and say what is in it.
    pub(super) fn keep(&self, found: &Found, text: &str, json: &str) -> std::io::Result<()> {
        let folder = Path::new(FOLDER);
        failure::clear(folder)?;
        if self.from_stdin {
            failure::save_input(&folder.join("input.pcapng"), self.session.wire)?;
        }
        let mut commands = vec![("the command that fails".to_string(), found.repro.to_string())];
        if let Some(reduced) = &found.reduced {
            let names = failure::save_input(&folder.join("smallest.pcapng"), &reduced.frames)?;
            let command = self.other.clone().on(names);
            commands.push((
                format!("the smallest input that was found to fail: {}", size(reduced, self.session)),
                command.to_string(),
            ));
        }
        let against = self.verdict.against.as_ref().map(|side| &side.outcome);
        failure::keep(
            folder,
            &Contents {
                input: self.session.wire,
                shape: &self.session.setup.shape,
                got: Some(&self.verdict.got.outcome),
                against,
                text,
                json,
                commands: &commands,
            },
        )?;
        eprintln!("hint: {}", found.repro);
        if let Some(reduced) = &found.reduced {
            eprintln!("note: {FOLDER}/smallest.pcapng still fails: {}", size(reduced, self.session));
        }
        eprintln!("note: {FOLDER}/ holds both outputs and the report");
        Ok(())
    }
}

fn size(reduced: &Reduced, session: &Session<'_>) -> String {
    let least = if reduced.least { "" } else { ", not yet the least: `onic reduce` looks on" };
    format!("{} of {} frames, {} runs{least}", reduced.frames.len(), session.wire.len(), reduced.runs)
}

/// A case's settings as options.
pub(super) fn with_settings(mut repro: Repro, loaded: &Loaded) -> Repro {
    let case = &loaded.case;
    let settings = [
        ("shape", Some(&case.shape)),
        ("rss-key", case.rss_key.as_ref()),
        ("rss-table", case.rss_table.as_ref()),
        ("pace", case.pace.as_ref()),
        ("runts", case.runts.as_ref()),
        ("stalls", case.stalls.as_ref()),
    ];
    for (name, value) in settings {
        if let Some(value) = value {
            repro = repro.set(name, value);
        }
    }
    repro.set("seed", loaded.seed.to_string())
}
