//! `onic gen`: frames that the host makes, to a capture or through a card to the wire.

use std::fs::File;
use std::io::BufWriter;

use anyhow::{Context, anyhow};
use regs::{FuncId, PortId};

use super::args::GenArgs;
use super::exit::{Exit, Failure};
use super::progress::Progress;
use super::repro::Repro;
use super::{load, report};
use crate::frames::{self, UDP_HEADERS};
use crate::output;
use crate::run::{HostFrame, InFrame};
use crate::session::{self, Session, Verdict};

pub(super) fn run(args: &GenArgs) -> Result<Exit, Failure> {
    let cards = load::cards(&args.card)?;
    let shape = &cards.setup.shape;
    let longest = usize::from(shape.mtu) + 14 - UDP_HEADERS;
    if args.msg_size > longest {
        let error =
            anyhow!("--msg-size {}: an MTU of {} carries {longest} bytes of UDP payload", args.msg_size, shape.mtu);
        return Err(Failure::from(error).hint("--shape 1x1,max-pkt=9600 has an MTU of 9582"));
    }
    let made = make(args, shape.functions.min(shape.ports), shape.queues)?;
    if args.to_capture {
        return to_capture(args, &made);
    }
    let session =
        Session { card: cards.card, against: cards.against, setup: cards.setup.clone(), wire: &[], host: &made };
    let mut progress = Progress::new();
    let verdict =
        session::run(&session, &mut |card, done, total| progress.at(card, done, total)).map_err(load::no_card)?;
    progress.finish();
    let exit = match (verdict.agreed(), made.is_empty()) {
        (false, _) => Exit::Difference,
        (true, true) => Exit::NothingCompared,
        (true, false) => Exit::Agreed,
    };
    let repro = (!verdict.agreed()).then(|| repro(args).to_string());
    report::finding_lines(&verdict.findings).iter().for_each(|line| eprintln!("{line}"));
    repro.iter().for_each(|repro| eprintln!("hint: {repro}"));
    if args.out.json {
        let run = report::RunReport::of(&verdict, &[], args.card.seed, repro);
        print!("{}", report::json(&report::Gen { version: report::VERSION, command: "gen", exit: exit.code(), run })?);
    } else {
        print!("{}", report::text(&verdict));
    }
    write_captures(args, &verdict, &session)?;
    Ok(exit)
}

/// The command that makes a failing run happen again.
fn repro(args: &GenArgs) -> Repro {
    let repro = Repro::of_this_process().without(&["json", "junit", "out", "out-against", "waves", "coverage"]);
    repro.or_set("card", &args.card.card).or_set("against", &args.card.against).set("seed", args.card.seed.to_string())
}

/// The frames, flow after flow in turn; a flow keeps its function and queue.
fn make(args: &GenArgs, functions: u8, queues: u16) -> Result<Vec<HostFrame>, Failure> {
    (0..args.count)
        .map(|number| {
            let flow = (number % u64::from(args.flows.max(1))) as u16;
            let func = FuncId((flow % u16::from(functions.max(1))) as u8);
            let data = frames::udp(flow, number, args.msg_size)?;
            Ok(HostFrame { func, queue: flow / u16::from(functions.max(1)) % queues, data })
        })
        .collect()
}

fn to_capture(args: &GenArgs, made: &[HostFrame]) -> Result<Exit, Failure> {
    let path = args.out.out.as_ref().ok_or_else(|| anyhow!("--to-capture needs --out F.pcapng"))?;
    let frames: Vec<InFrame> = made
        .iter()
        .enumerate()
        .map(|(index, frame)| InFrame {
            port: PortId(0),
            index: index as u64,
            time_ns: None,
            data: frame.data.clone(),
            err: false,
        })
        .collect();
    let file = BufWriter::new(File::create(path).with_context(|| path.display().to_string())?);
    output::write_input(&frames, 0, file).with_context(|| path.display().to_string())?;
    eprintln!("{}: {} frames", path.display(), frames.len());
    Ok(Exit::Agreed)
}

fn write_captures(args: &GenArgs, verdict: &Verdict, session: &Session<'_>) -> Result<(), Failure> {
    let sides = [(&args.out.out, Some(&verdict.got)), (&args.out.out_against, verdict.against.as_ref())];
    for (path, side) in sides {
        let (Some(path), Some(side)) = (path, side) else { continue };
        let file = BufWriter::new(File::create(path).with_context(|| path.display().to_string())?);
        output::write(&side.outcome, &[], &session.setup.shape, file).with_context(|| path.display().to_string())?;
    }
    Ok(())
}
