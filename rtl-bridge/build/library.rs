//! Verilate, compile, link; or find that it was done before.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::sources::{Coverage, Sources, TopSpec};
use super::toolchain::Toolchain;
use super::{BuildError, wrapper};

/// Raised by hand when something changes in how a library is made that no flag list below shows.
const RECIPE: &str = "1";

/// How a library will be used; decides how it is compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A static archive that becomes part of the program.
    Linked,
    /// A shared object that is loaded at run time and never unloaded: everything hidden but the factory, and no symbol
    /// shared with the program or another library, so that each brings its own Verilator runtime.
    Loaded,
}

/// Name of the archive within its folder, as the linker wants it (`-lonic_top`).
pub const LINKED_NAME: &str = "onic_top";
const LINKED_FILE: &str = "libonic_top.a";
const LOADED_FILE: &str = "onic_top.so";

/// Prefix of generated classes.
const CLASS: &str = "Vtop";

/// Verilator's runtime, as far as our flags need it.
const RUNTIME: [&str; 4] = ["verilated.cpp", "verilated_cov.cpp", "verilated_fst_c.cpp", "verilated_threads.cpp"];

/// Flags of every file. cargo's own C++ defaults (PIC and frame pointers) would cost a tenth.
/// The `VM_` ones are what Verilator's makefile would say for our switches. The hooks are ours (cpp/verilated_top.h).
const CXX_FLAGS: &[&str] = &[
    "-std=gnu++20",
    "-fcf-protection=none",
    "-faligned-new",
    "-w",
    "-DVERILATOR=1",
    "-DVM_COVERAGE=1",
    "-DVM_SC=0",
    "-DVM_TRACE=1",
    "-DVM_TRACE_FST=1",
    "-DVM_TRACE_VCD=0",
    "-DVM_TRACE_SAIF=0",
    "-DVL_USER_FINISH",
    "-DVL_USER_STOP",
    "-DVL_USER_FATAL",
    "-DVL_USER_WARN",
];

/// How files are optimised. `__Slow` ones run once, at construction: optimising them costs build time and gains nothing. The
/// other generated ones run as fast at `-O1` as at `-O2`, in half the time to build: a Verilated evaluation is straight code
/// without loops.
const OPTIMISE_SLOW: &str = "-O0";
const OPTIMISE_GENERATED: &str = "-O1";
const OPTIMISE_RUNTIME: &str = "-O2";

impl Kind {
    fn flags(self) -> &'static [&'static str] {
        match self {
            // A Rust program is position independent; position-independent *code* is dearer and not needed.
            Kind::Linked => &["-fPIE"],
            Kind::Loaded => &["-fPIC", "-fvisibility=hidden", "-fno-gnu-unique"],
        }
    }

    fn file(self) -> &'static str {
        match self {
            Kind::Linked => LINKED_FILE,
            Kind::Loaded => LOADED_FILE,
        }
    }
}

/// Told what is being done: (step, done, of).
pub type Progress<'a> = &'a (dyn Fn(&str, usize, usize) + Sync);

/// Builds libraries into one cache folder.
pub struct Builder<'a> {
    /// Programs.
    pub toolchain: &'a Toolchain,
    /// `rtl-bridge/cpp`.
    pub cpp_dir: PathBuf,
    /// Where `HASH` folders live.
    pub cache: PathBuf,
    /// Compilers at a time.
    pub jobs: usize,
    /// Called before each step.
    pub progress: Progress<'a>,
}

/// A library that exists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Library {
    /// The file.
    pub path: PathBuf,
    /// Content hash, the name of its folder.
    pub hash: String,
    /// It was there already.
    pub cached: bool,
}

impl Builder<'_> {
    /// The library of a top, from the cache or built now.
    ///
    /// # Errors
    /// [`BuildError`]; nothing is left behind under the hash's name.
    pub fn build(&self, spec: &TopSpec, kind: Kind) -> Result<Library, BuildError> {
        let sources = Sources::read(&spec.file_list)?;
        let hash = self.hash_of(spec, &sources, kind)?;
        let path = self.cache.join(&hash).join(kind.file());
        if path.is_file() {
            return Ok(Library { path, hash, cached: true });
        }
        // One build at a time in a process: each uses all jobs, and the second one to ask finds the first one's work.
        let _building = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
        if path.is_file() {
            return Ok(Library { path, hash, cached: true });
        }
        self.toolchain.check_headers()?;
        let runtime = self.runtime(kind)?;
        self.in_new_folder(&hash, |dir| self.build_in(dir, spec, &sources, kind, &hash, &runtime))?;
        Ok(Library { path, hash, cached: false })
    }

    /// The name that the library of a top has, built or not.
    ///
    /// # Errors
    /// [`BuildError::Sources`], [`BuildError::Io`].
    pub fn content_hash(&self, spec: &TopSpec, kind: Kind) -> Result<String, BuildError> {
        self.hash_of(spec, &Sources::read(&spec.file_list)?, kind)
    }

    /// Everything that decides what the library does, and nothing else: no absolute path, no time.
    fn hash_of(&self, spec: &TopSpec, sources: &Sources, kind: Kind) -> Result<String, BuildError> {
        let mut hasher = self.base_hasher(kind)?;
        hasher.text(&format!("{:?}", verilator_args(spec, sources)));
        for input in &sources.inputs {
            hasher.file(&sources.base.join(input), &input.display().to_string())?;
        }
        Ok(hasher.finish())
    }

    fn base_hasher(&self, kind: Kind) -> Result<Hasher, BuildError> {
        let mut hasher = Hasher(blake3::Hasher::new());
        hasher.text(&self.toolchain.identity());
        hasher.text(&format!("{CXX_FLAGS:?} {:?}", kind.flags()));
        hasher.text(&format!("{OPTIMISE_SLOW} {OPTIMISE_GENERATED} {OPTIMISE_RUNTIME}"));
        for name in ["top.h", "hooks.h", "every_eval.h", "verilated_top.h"] {
            hasher.file(&self.cpp_dir.join(name), name)?;
        }
        hasher.text(&wrapper::generate(CLASS, "", "", &[]));
        hasher.text(RECIPE);
        Ok(hasher)
    }

    /// Object files of Verilator's runtime, shared by all tops of a kind.
    fn runtime(&self, kind: Kind) -> Result<Vec<PathBuf>, BuildError> {
        let mut hasher = self.base_hasher(kind)?;
        hasher.text("runtime");
        let hash = hasher.finish();
        let dir = self.cache.join(&hash);
        let objects: Vec<PathBuf> = RUNTIME.iter().map(|name| dir.join(name).with_extension("o")).collect();
        if !objects.iter().all(|object| object.is_file()) {
            self.in_new_folder(&hash, |temporary| {
                let include = self.toolchain.verilator_root.join("include");
                let jobs = RUNTIME.iter().map(|name| Job::runtime(include.join(name), temporary)).collect();
                self.compile(jobs, temporary, kind, "compiling Verilator's runtime").map(|_| ())
            })?;
        }
        Ok(objects)
    }

    fn build_in(
        &self,
        dir: &Path,
        spec: &TopSpec,
        sources: &Sources,
        kind: Kind,
        hash: &str,
        runtime: &[PathBuf],
    ) -> Result<(), BuildError> {
        let generated = dir.join("generated");
        std::fs::create_dir(&generated).map_err(BuildError::io(&generated))?;
        self.verilate(spec, sources, &generated)?;
        self.write_wrapper(&generated, spec, hash)?;
        let jobs = jobs_for(&generated)?;
        let mut objects = self.compile(jobs, &generated, kind, "compiling the RTL")?;
        objects.extend_from_slice(runtime);
        self.link(kind, &objects, &dir.join(kind.file()))?;
        std::fs::remove_dir_all(&generated).map_err(BuildError::io(&generated))
    }

    fn verilate(&self, spec: &TopSpec, sources: &Sources, out: &Path) -> Result<(), BuildError> {
        (self.progress)("Verilating", 0, 1);
        let mut command = Command::new(&self.toolchain.verilator_bin);
        command.current_dir(&sources.base).env("VERILATOR_ROOT", &self.toolchain.verilator_root);
        command.args(verilator_args(spec, sources)).arg("--Mdir").arg(out);
        run(&mut command, &format!("Verilating {}", spec.top_module))
    }

    fn write_wrapper(&self, generated: &Path, spec: &TopSpec, hash: &str) -> Result<(), BuildError> {
        let header = generated.join(CLASS).with_extension("h");
        let text = std::fs::read_to_string(&header).map_err(BuildError::io(&header))?;
        let ports = wrapper::parse_ports(&text)?;
        let path = generated.join("onic_wrapper.cpp");
        std::fs::write(&path, wrapper::generate(CLASS, &spec.top_module, hash, &ports)).map_err(BuildError::io(&path))
    }

    /// Run all jobs, `self.jobs` at a time; the first failure ends it.
    fn compile(&self, jobs: Vec<Job>, include: &Path, kind: Kind, step: &str) -> Result<Vec<PathBuf>, BuildError> {
        let objects: Vec<PathBuf> = jobs.iter().map(|job| job.object.clone()).collect();
        let total = jobs.len();
        let queue = Mutex::new(VecDeque::from(jobs));
        let failure = Mutex::new(None);
        let worker = || {
            loop {
                let Some(job) = next_job(&queue, &failure) else { return };
                let left = queue.lock().map_or(0, |queue| queue.len());
                (self.progress)(step, total - left - 1, total);
                if let Err(error) = run(&mut self.compiler(&job, include, kind), step)
                    && let Ok(mut slot) = failure.lock()
                {
                    slot.get_or_insert(error);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.clamp(1, total.max(1)) {
                scope.spawn(worker);
            }
        });
        match failure.into_inner() {
            Ok(Some(error)) => Err(error),
            _ => Ok(objects),
        }
    }

    fn compiler(&self, job: &Job, include: &Path, kind: Kind) -> Command {
        let root = self.toolchain.verilator_root.join("include");
        let mut command = Command::new(&self.toolchain.cxx);
        command.args(CXX_FLAGS).args(kind.flags()).arg(job.optimisation);
        command.arg("-include").arg(self.cpp_dir.join("hooks.h"));
        if job.generated && self.toolchain.is_pinned() {
            command.arg("-include").arg(self.cpp_dir.join("every_eval.h"));
        }
        command.arg("-I").arg(include).arg("-I").arg(&self.cpp_dir);
        command.arg("-isystem").arg(&root).arg("-isystem").arg(root.join("vltstd"));
        command.arg("-c").arg(&job.source).arg("-o").arg(&job.object);
        command
    }

    fn link(&self, kind: Kind, objects: &[PathBuf], out: &Path) -> Result<(), BuildError> {
        (self.progress)("linking", 0, 1);
        let mut command = match kind {
            Kind::Linked => {
                let mut command = Command::new("ar");
                command.arg("crs").arg(out).args(objects);
                command
            }
            Kind::Loaded => {
                let mut command = Command::new(&self.toolchain.cxx);
                command.args(["-shared", "-Wl,-Bsymbolic", "-Wl,-z,defs", "-o"]).arg(out).args(objects);
                command.args(["-lz", "-llz4", "-lpthread"]);
                command
            }
        };
        run(&mut command, "linking")
    }

    /// Fill a folder under a name of its own, then give it the hash's name. If another process was faster, its
    /// folder has the same contents and stays.
    fn in_new_folder(&self, hash: &str, fill: impl FnOnce(&Path) -> Result<(), BuildError>) -> Result<(), BuildError> {
        std::fs::create_dir_all(&self.cache).map_err(BuildError::io(&self.cache))?;
        let temporary = self.cache.join(format!("{hash}.{}{TEMPORARY}", std::process::id()));
        if temporary.exists() {
            std::fs::remove_dir_all(&temporary).map_err(BuildError::io(&temporary))?;
        }
        std::fs::create_dir(&temporary).map_err(BuildError::io(&temporary))?;
        let filled = fill(&temporary);
        let target = self.cache.join(hash);
        let renamed = filled.and_then(|()| match std::fs::rename(&temporary, &target) {
            Err(_) if target.is_dir() => Ok(()),
            other => other.map_err(BuildError::io(&target)),
        });
        if temporary.exists() {
            // Only tidiness is lost when this fails.
            let _ = std::fs::remove_dir_all(&temporary);
        }
        renamed
    }
}

static BUILDING: Mutex<()> = Mutex::new(());

const TEMPORARY: &str = ".tmp";

/// Remove every library that is loaded at run time, the runtimes and leftovers of builds that were killed. Linked
/// archives stay: cargo counts on them. Returns how many folders went.
///
/// # Errors
/// [`BuildError::Io`].
pub fn clean_cache(cache: &Path) -> Result<usize, BuildError> {
    let mut removed = 0;
    let entries = match std::fs::read_dir(cache) {
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        other => other.map_err(BuildError::io(cache))?,
    };
    for entry in entries {
        let path = entry.map_err(BuildError::io(cache))?.path();
        if is_ours(&path) && !path.join(LINKED_FILE).exists() {
            std::fs::remove_dir_all(&path).map_err(BuildError::io(&path))?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// A folder named by a hash of ours, whole or half-made. `$ONIC_CACHE` may hold other things.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let hash = name.split('.').next().unwrap_or_default();
    path.is_dir() && hash.len() == HASH_DIGITS && hash.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Hexadecimal digits of a hash in a folder's name: 96 bits.
const HASH_DIGITS: usize = 24;

struct Hasher(blake3::Hasher);

impl Hasher {
    /// Length first, so that two texts never run into each other.
    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn file(&mut self, path: &Path, name: &str) -> Result<(), BuildError> {
        let bytes = std::fs::read(path).map_err(BuildError::io(path))?;
        self.text(name);
        self.bytes(&bytes);
        Ok(())
    }

    fn finish(&self) -> String {
        self.0.finalize().to_hex()[..HASH_DIGITS].to_string()
    }
}

/// One compilation.
struct Job {
    source: PathBuf,
    object: PathBuf,
    optimisation: &'static str,
    /// Verilator wrote it for this top; else it is part of its runtime.
    generated: bool,
}

impl Job {
    fn runtime(source: PathBuf, out: &Path) -> Job {
        Job { object: object(&source, out), source, optimisation: OPTIMISE_RUNTIME, generated: false }
    }

    fn generated(source: PathBuf, out: &Path, slow: bool) -> Job {
        let optimisation = if slow { OPTIMISE_SLOW } else { OPTIMISE_GENERATED };
        Job { object: object(&source, out), source, optimisation, generated: true }
    }
}

fn object(source: &Path, out: &Path) -> PathBuf {
    out.join(source.file_name().unwrap_or_default()).with_extension("o")
}

fn next_job(queue: &Mutex<VecDeque<Job>>, failure: &Mutex<Option<BuildError>>) -> Option<Job> {
    if failure.lock().ok()?.is_some() {
        return None;
    }
    queue.lock().ok()?.pop_front()
}

/// All C++ of a folder, the largest first so that no long one is left for the end, `__Slow` ones last.
fn jobs_for(generated: &Path) -> Result<Vec<Job>, BuildError> {
    let mut sources = Vec::new();
    for entry in std::fs::read_dir(generated).map_err(BuildError::io(generated))? {
        let entry = entry.map_err(BuildError::io(generated))?;
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "cpp") {
            let slow = path.to_string_lossy().ends_with("__Slow.cpp");
            let size = entry.metadata().map_err(BuildError::io(&path))?.len();
            sources.push((slow, std::cmp::Reverse(size), path));
        }
    }
    sources.sort();
    Ok(sources.into_iter().map(|(slow, _, path)| Job::generated(path, generated, slow)).collect())
}

/// Verilator's command line but for the output folder.
fn verilator_args(spec: &TopSpec, sources: &Sources) -> Vec<String> {
    let mut args: Vec<String> = [
        "--cc",
        "--trace-fst",
        "--assert",
        "--x-assign",
        "unique",
        "--x-initial",
        "unique",
        "--threads",
        "1",
        "--timescale",
        "1ps/1ps",
        "-Wno-fatal",
        "-Wno-lint",
        "-Wno-style",
    ]
    .map(str::to_string)
    .to_vec();
    args.extend(["--prefix", CLASS, "--top-module", &spec.top_module].map(str::to_string));
    args.push(if spec.timing { "--timing" } else { "--no-timing" }.to_string());
    args.push(match spec.coverage {
        Coverage::User => "--coverage-user".to_string(),
        Coverage::Full => "--coverage".to_string(),
    });
    args.extend(spec.parameters.iter().map(|(name, value)| format!("-G{name}={value}")));
    args.extend(spec.defines.iter().map(|name| format!("-D{name}")));
    args.extend(sources.include_dirs.iter().map(|dir| format!("+incdir+{}", dir.display())));
    args.extend(sources.files.iter().map(|file| file.display().to_string()));
    args
}

fn run(command: &mut Command, step: &str) -> Result<(), BuildError> {
    let program = command.get_program().to_os_string();
    let output = command.stdin(Stdio::null()).output().map_err(BuildError::io(PathBuf::from(program)))?;
    if output.status.success() {
        return Ok(());
    }
    let mut log = String::from_utf8_lossy(&output.stdout).into_owned();
    log.push_str(&String::from_utf8_lossy(&output.stderr));
    let mut end = log.len().min(4000);
    while !log.is_char_boundary(end) {
        end -= 1;
    }
    log.truncate(end);
    Err(BuildError::Failed { step: step.to_string(), log })
}
