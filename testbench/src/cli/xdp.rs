//! `onic xdp`: what an object holds, which helpers there are, and a program's verdicts on captured frames.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context, anyhow};
use serde_json::{Value, json};
use traces::Point;
use traces::read::{Event, Frame, Policy, Reader};
use traces::write::{Packet, PcapNg};
use xdp_vm::{Helper, MapType, ProgramInfo, RxMeta, XdpObject, helper_name};

use super::args::{XdpArgs, XdpCommand, XdpRunArgs};
use super::exit::{Exit, Failure};
use super::table;
use crate::xdp::{Action, ObjectSpec, OpenError, Setup, Subject, Tally, maps};

/// How many refused packets are told one by one.
const SHOWN: usize = 10;

pub(super) fn run(args: &XdpArgs) -> Result<Exit, Failure> {
    match &args.command {
        XdpCommand::List { object, json } => list(object, *json),
        XdpCommand::Helpers { json } => Ok(helpers(*json)),
        XdpCommand::Run(args) => run_program(args),
    }
}

// ---- list ----

fn list(path: &Path, json: bool) -> Result<Exit, Failure> {
    let (name, bytes) = crate::xdp::read(path).map_err(refused)?;
    let object = XdpObject::parse(&name, &bytes).map_err(|error| refused(OpenError::Object(error)))?;
    let programs = object.programs();
    if json {
        let list: Vec<Value> = programs.iter().map(program_json).collect();
        let globals: Vec<Value> =
            object.globals().into_iter().map(|(name, bytes)| json!({ "name": name, "bytes": bytes })).collect();
        println!(
            "{}",
            json!({ "version": 1, "object": name, "license": object.license(), "programs": list, "globals": globals })
        );
        return Ok(Exit::Agreed);
    }
    println!("{name}: license {:?}\n", object.license());
    let rows: Vec<Vec<String>> = programs.iter().map(program_row).collect();
    print!("{}", table::print(&["program", "section", ">insns", "maps", "helpers", "loads"], &rows));
    for problem in programs.iter().flat_map(|program| &program.problems) {
        println!("\n{name}: {problem}");
    }
    Ok(Exit::Agreed)
}

fn program_row(program: &ProgramInfo) -> Vec<String> {
    let helpers: Vec<String> = program.helpers.iter().map(|id| helper_text(*id)).collect();
    vec![
        program.name.clone(),
        program.section.clone(),
        program.insns.to_string(),
        joined(&program.maps),
        joined(&helpers),
        match program.problems.len() {
            0 => "yes".into(),
            1 => "no: 1 problem".into(),
            more => format!("no: {more} problems"),
        },
    ]
}

fn program_json(program: &ProgramInfo) -> Value {
    let helpers: Vec<String> = program.helpers.iter().map(|id| helper_text(*id)).collect();
    let problems: Vec<String> = program.problems.iter().map(ToString::to_string).collect();
    json!({ "name": program.name, "section": program.section, "insns": program.insns, "maps": program.maps,
            "helpers": helpers, "problems": problems })
}

fn helper_text(id: i32) -> String {
    helper_name(id).map_or_else(|| format!("helper {id}"), Into::into)
}

fn joined(words: &[String]) -> String {
    if words.is_empty() { "-".into() } else { words.join(" ") }
}

// ---- helpers ----

fn helpers(json: bool) -> Exit {
    let map_types: Vec<&str> =
        MapType::ALL.iter().filter_map(|map_type| MapType::kernel_name(*map_type as u32)).collect();
    if json {
        let list: Vec<Value> = Helper::ALL
            .iter()
            .map(|helper| json!({ "id": helper.id(), "name": helper.name(), "gpl_only": helper.gpl_only() }))
            .collect();
        println!("{}", json!({ "version": 1, "helpers": list, "map_types": map_types }));
        return Exit::Agreed;
    }
    let rows: Vec<Vec<String>> = Helper::ALL
        .iter()
        .map(|helper| {
            let license = if helper.gpl_only() { "GPL-compatible" } else { "any" };
            vec![helper.id().to_string(), format!("bpf_{}", helper.name()), license.into()]
        })
        .collect();
    println!("{}", table::print(&[">id", "helper", "license"], &rows));
    println!("map types: {}", map_types.join(" "));
    Exit::Agreed
}

// ---- run ----

/// A packet that the program was not shown.
struct Skips {
    count: u64,
    shown: Vec<String>,
}

impl Skips {
    fn add(&mut self, text: String) {
        self.count += 1;
        if self.shown.len() < SHOWN {
            self.shown.push(text);
        }
    }
}

fn run_program(args: &XdpRunArgs) -> Result<Exit, Failure> {
    if args.queue >= args.cpus && args.queue > 0 {
        let error = anyhow!("--queue {} is looked at by CPU {0}, and there are --cpus {}", args.queue, args.cpus);
        return Err(Failure::from(error).hint(format!("--cpus {}", args.queue.saturating_add(1))));
    }
    let mut subject = Subject::load(&ObjectSpec::from(args.object.as_str()), &setup(args)?).map_err(refused)?;
    check_files(args)?;
    let mut out = args.out.as_deref().map(|path| Output::create(path, args.before)).transpose()?;
    let (mut tally, mut skips) = (Tally::default(), Skips { count: 0, shown: Vec::new() });
    for capture in &args.captures {
        run_capture(capture, args, &mut subject, &mut tally, &mut skips, out.as_mut())?;
    }
    if let Some(out) = out {
        out.finish()?;
    }
    let maps = maps::dump(&mut subject.vm);
    if let Some(path) = &args.dump_maps {
        dump_maps(path, &maps)?;
    }
    if args.json {
        println!("{}", report_json(args, &mut subject, &tally, &skips, maps));
    } else {
        report(args, &mut subject, &tally);
    }
    skips.shown.iter().for_each(|text| eprintln!("skipped: {text}"));
    if skips.count > skips.shown.len() as u64 {
        eprintln!("skipped: and {} more", skips.count - skips.shown.len() as u64);
    }
    Ok(match (tally.faults.is_empty(), skips.count, tally.frames) {
        (false, ..) => Exit::Difference,
        (true, 1.., _) => Exit::BadInput,
        (true, 0, 0) => Exit::NothingCompared,
        (true, 0, _) => Exit::Agreed,
    })
}

/// Inputs that can't be read are told before an output is begun, and no output takes the place of an input.
fn check_files(args: &XdpRunArgs) -> Result<(), Failure> {
    let files = || args.captures.iter().filter(|name| *name != "-");
    for name in files() {
        File::open(name).with_context(|| name.clone())?;
    }
    for out in [&args.out, &args.dump_maps].into_iter().flatten() {
        if let Ok(place) = out.canonicalize()
            && let Some(name) = files().find(|name| Path::new(name).canonicalize().is_ok_and(|input| input == place))
        {
            let error = anyhow!("{} is the capture {name} itself, which would be lost", out.display());
            return Err(Failure::from(error).hint("another name for --out or --dump-maps"));
        }
    }
    if args.out.as_deref() == Some(Path::new("-")) {
        return Err(Failure::from(anyhow!("--out - : a capture is written to a file")).hint("--out FILE.pcapng"));
    }
    if args.json && args.dump_maps.as_deref() == Some(Path::new("-")) {
        let error = anyhow!("--json and --dump-maps - both want standard output");
        return Err(Failure::from(error).hint("--json holds the maps"));
    }
    Ok(())
}

fn setup(args: &XdpRunArgs) -> Result<Setup, Failure> {
    let size = |text: &String| {
        let parts = text.split_once('=').and_then(|(name, entries)| Some((name.to_string(), entries.parse().ok()?)));
        parts.ok_or_else(|| anyhow!("--map-size `{text}` is not NAME=N"))
    };
    let setting = |text: &String| text.parse::<maps::MapSetting>().map_err(|why| anyhow!("--map {why}"));
    Ok(Setup {
        cpus: args.cpus,
        seed: args.seed,
        map_sizes: args.map_sizes.iter().map(size).collect::<Result<_, _>>()?,
        map_settings: args.maps.iter().map(setting).collect::<Result<_, _>>()?,
    })
}

/// An object that can't be used, and what to do about it.
fn refused(error: OpenError) -> Failure {
    let hint = match &error {
        OpenError::Load(_) => Some("onic xdp list OBJ shows each program's problems; onic xdp helpers what there is"),
        OpenError::Map(_) => Some("--map NAME[KEY]=VALUE: 53, 0x35, 192.0.2.1, 10.0.0.0/8, hex:0a000001"),
        OpenError::Object(_) | OpenError::Read { .. } => None,
    };
    let failure = Failure::from(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn run_capture(
    name: &str,
    args: &XdpRunArgs,
    subject: &mut Subject,
    tally: &mut Tally,
    skips: &mut Skips,
    mut out: Option<&mut Output>,
) -> Result<(), Failure> {
    let mut reader = Reader::open(Path::new(name), Policy::default())?;
    let (mut frame, mut page) = (Frame::default(), Vec::new());
    let mut now_ns = 0;
    loop {
        match reader.read(&mut frame) {
            Ok(Event::End) => return Ok(()),
            Ok(Event::Frame) => {}
            Ok(Event::Refused(refused)) => {
                skips.add(format!("{name}: {refused}"));
                continue;
            }
            // What was read before that is whole.
            Err(damage) => {
                skips.add(damage.to_string());
                return Ok(());
            }
        }
        // A frame without a time of its own comes right after the one before it.
        now_ns = frame.time_ns.unwrap_or(now_ns);
        let meta = RxMeta { ifindex: args.ifindex, queue: args.queue, cpu: args.queue, now_ns };
        match subject.run(&frame.data, &meta, &mut page, tally) {
            Err(why) => skips.add(format!("{name}: packet {}: {why}", frame.index + 1)),
            Ok(seen) => {
                if let Some(out) = out.as_deref_mut() {
                    out.write(&frame, now_ns, seen.after, Action::of(&seen.outcome), args.queue)?;
                }
            }
        }
    }
}

/// The capture of `--out`.
struct Output {
    file: PcapNg<BufWriter<File>>,
    path: String,
    before: bool,
}

impl Output {
    const CAME: Point = Point::Interface(0);
    const LEFT: Point = Point::Interface(1);

    fn create(path: &Path, before: bool) -> Result<Output, Failure> {
        let name = path.display().to_string();
        let file = File::create(path).with_context(|| name.clone())?;
        let points = [Self::CAME, Self::LEFT];
        let points = if before { &points[..] } else { &points[1..] };
        let file = PcapNg::new(BufWriter::new(file), points).with_context(|| name.clone())?;
        Ok(Output { file, path: name, before })
    }

    fn write(&mut self, frame: &Frame, time_ns: u64, after: &[u8], action: Action, queue: u32) -> Result<(), Failure> {
        let packet = |point, data| Packet {
            packet_id: Some(frame.index),
            queue: Some(queue),
            ..Packet::new(point, time_ns, data)
        };
        if self.before {
            self.file.write(&packet(Self::CAME, &frame.data)).with_context(|| self.path.clone())?;
        }
        let left = Packet { xdp: Some(action.number()), ..packet(Self::LEFT, after) };
        Ok(self.file.write(&left).with_context(|| self.path.clone())?)
    }

    fn finish(self) -> Result<(), Failure> {
        let mut out = self.file.finish().with_context(|| self.path.clone())?;
        Ok(std::io::Write::flush(&mut out).with_context(|| self.path.clone())?)
    }
}

fn dump_maps(path: &Path, maps: &Value) -> Result<(), Failure> {
    let text = format!("{maps:#}\n");
    if path == Path::new("-") {
        super::put(format_args!("{text}"));
        return Ok(());
    }
    Ok(std::fs::write(path, text).with_context(|| path.display().to_string())?)
}

fn report(args: &XdpRunArgs, subject: &mut Subject, tally: &Tally) {
    println!("{}, program {}: {} frames, {} changed\n", args.object, subject.program, tally.frames, tally.changed);
    let rows: Vec<Vec<String>> = Action::ALL
        .into_iter()
        .map(|action| {
            let count = tally.actions.get(&action).copied().unwrap_or_default();
            let share = 100.0 * count.frames as f64 / tally.frames.max(1) as f64;
            vec![action.name().into(), count.frames.to_string(), count.bytes.to_string(), format!("{share:.1} %")]
        })
        .collect();
    print!("{}", table::print(&["verdict", ">frames", ">bytes", ">share"], &rows));
    let mean = tally.insns as f64 / tally.frames.max(1) as f64;
    println!("\ninstructions a frame: {mean:.1}, at most {}", tally.insns_max);
    tally.targets.iter().for_each(|(target, frames)| println!("redirected to {target}: {frames}"));
    print_trace(subject);
    tally.faults.iter().for_each(|(fault, frames)| eprintln!("fault, {frames} frames: {fault}"));
}

/// What the program printed.
fn print_trace(subject: &mut Subject) {
    let trace = subject.vm.trace();
    trace.text().lines().for_each(|line| eprintln!("trace: {line}"));
    if trace.lost() > 0 {
        eprintln!("trace: and {} lines more that were not kept", trace.lost());
    }
}

fn report_json(args: &XdpRunArgs, subject: &mut Subject, tally: &Tally, skips: &Skips, maps: Value) -> Value {
    let verdicts: serde_json::Map<String, Value> = Action::ALL
        .into_iter()
        .map(|action| {
            let count = tally.actions.get(&action).copied().unwrap_or_default();
            (action.name().to_string(), json!({ "frames": count.frames, "bytes": count.bytes }))
        })
        .collect();
    let trace: Vec<String> = subject.vm.trace().text().lines().map(Into::into).collect();
    json!({ "version": 1, "command": "xdp run", "object": args.object, "program": subject.program,
            "frames": tally.frames, "changed": tally.changed, "skipped": skips.count, "verdicts": verdicts,
            "targets": tally.targets, "faults": tally.faults, "insns": tally.insns, "insns_max": tally.insns_max,
            "trace": trace, "maps": maps })
}
