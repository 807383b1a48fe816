//! Progress on stderr: a bar on a terminal, a counted line now and then otherwise.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often a log gets a line.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Progress of runs one after the other.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    card: String,
    /// What is counted.
    unit: &'static str,
    last_line: Instant,
}

impl Progress {
    /// A bar if stderr is a terminal.
    pub(super) fn new() -> Progress {
        Progress::counting("frames")
    }

    /// The same, of something else than frames.
    pub(super) fn counting(unit: &'static str) -> Progress {
        let on_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
        let bar = on_terminal.then(|| {
            let template = format!("{{msg:>8}} {{bar:40}} {{pos}}/{{len}} {unit} {{per_sec}} {{eta}}");
            let style = ProgressStyle::with_template(&template);
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(5));
            style.map(|style| bar.set_style(style)).unwrap_or_default();
            bar
        });
        Progress { bar, card: String::new(), unit, last_line: Instant::now() }
    }

    /// `done` of `total` frames are through `card`.
    pub(super) fn at(&mut self, card: &str, done: u64, total: u64) {
        match &self.bar {
            Some(bar) => {
                if self.card != card {
                    bar.reset();
                    bar.set_message(card.to_string());
                    bar.set_length(total);
                }
                bar.set_position(done);
            }
            None if self.last_line.elapsed() >= LOG_EVERY => {
                eprintln!("{card}: {done} of {total} {}", self.unit);
                self.last_line = Instant::now();
            }
            None => {}
        }
        if self.card != card {
            self.card = card.to_string();
        }
    }

    /// Take the bar away.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
