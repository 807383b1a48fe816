//! Running the real `onic` under a time limit, in a folder of its own.
#![allow(dead_code)] // each test file uses a part

pub mod schema;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use traces::Point;
use traces::write::{Packet, PcapNg};

/// No command here takes more than seconds; a loop without end must not hang the tests.
const LIMIT: Duration = Duration::from_secs(60);

/// What a command did.
#[derive(Debug)]
pub struct Ran {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: String,
}

impl Ran {
    /// Standard output as text.
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard output as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.out()))
    }

    /// The same, if the code is this one.
    #[track_caller]
    pub fn code(self, code: i32) -> Ran {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out(), self.stderr);
        self
    }

    /// The same, if stderr says so.
    #[track_caller]
    pub fn says(self, text: &str) -> Ran {
        assert!(self.stderr.contains(text), "no `{text}` in stderr:\n{}", self.stderr);
        self
    }
}

/// A folder to run in, gone when the test ends.
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// Empty.
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file in it.
    pub fn file(&self, name: &str, bytes: &[u8]) -> String {
        std::fs::write(self.path(name), bytes).expect("the temporary folder");
        name.into()
    }

    /// A file's bytes.
    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// A file's text.
    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).expect("text")
    }

    /// Run `onic` here.
    pub fn onic(&self, args: &[&str]) -> Ran {
        self.onic_with(args, &[])
    }

    /// Run `onic` here with something on standard input.
    pub fn onic_with(&self, args: &[&str], stdin: &[u8]) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onic"));
        command.args(args).current_dir(self.0.path());
        run(command, stdin)
    }

    /// Run a line as a shell does, as a person pastes it.
    pub fn shell(&self, line: &str) -> Ran {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(self.0.path());
        run(command, &[])
    }

    /// A copy of a golden case of this repository.
    pub fn golden(&self, name: &str) -> String {
        std::fs::create_dir_all(self.path(name)).expect("the temporary folder");
        for entry in std::fs::read_dir(golden().join(name)).expect("a golden case") {
            let path = entry.expect("a file").path();
            std::fs::copy(&path, self.path(name).join(path.file_name().expect("a name"))).expect("a copy");
        }
        name.into()
    }
}

fn run(mut command: Command, stdin: &[u8]) -> Ran {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("onic starts");
    let (mut input, mut output, mut errors) =
        (child.stdin.take().unwrap(), child.stdout.take().unwrap(), child.stderr.take().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(stdin));
        let stdout = scope.spawn(move || {
            let mut bytes = Vec::new();
            output.read_to_end(&mut bytes).map(|_| bytes)
        });
        let stderr = scope.spawn(move || {
            let mut bytes = Vec::new();
            errors.read_to_end(&mut bytes).map(|_| bytes)
        });
        let begin = Instant::now();
        let status = loop {
            match child.try_wait().expect("a child") {
                Some(status) => break status,
                None if begin.elapsed() > LIMIT => {
                    let _ = child.kill();
                    panic!("{command:?} runs for more than {LIMIT:?}");
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let stdout = stdout.join().unwrap().expect("stdout");
        let stderr = String::from_utf8_lossy(&stderr.join().unwrap().expect("stderr")).into_owned();
        assert!(!stderr.contains("panicked"), "{stderr}");
        Ran { code: status.code().unwrap_or(-1), stdout, stderr }
    })
}

/// The golden cases of this repository.
pub fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces/golden")
}

/// A golden case's folder, as an argument.
pub fn case(name: &str) -> String {
    golden().join(name).display().to_string()
}

/// A file that is shared beside the checkout; says so if it is not there.
pub fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared").join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: {} is not there", path.display());
    None
}

/// A capture of frames at port 0, one microsecond apart.
pub fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut out = PcapNg::new(Vec::new(), &[Point::Port(0)]).expect("memory");
    for (at, data) in frames.iter().enumerate() {
        out.write(&Packet::new(Point::Port(0), 1_700_000_000_000_000_000 + 1_000 * at as u64, data)).expect("memory");
    }
    out.finish().expect("memory")
}

/// `count` UDP frames of 8 flows.
pub fn udp(count: u64) -> Vec<Vec<u8>> {
    (0..count).map(|n| testbench::frames::udp((n % 8) as u16, n, 40 + n as usize % 100).expect("fits")).collect()
}
