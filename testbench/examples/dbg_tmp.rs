use testbench::card::{Choice,Shape}; use testbench::run::*; use testbench::input::*; use testbench::execute::*; 
fn main() {
    let shape: Shape = "2x2,queues=1,max-pkt=9600,ring=256".parse().unwrap();
    let input = read(&[Source::from("/tmp/t-props/out/replay-smallest.pcapng")], &shape, Runts::Keep).unwrap();
    println!("{} frames {:?}", input.frames.len(), input.skips);
    let mut frames = input.frames;
    let setup = Setup { shape, ..Setup::default() };
    let card = Choice::named("model");
    struct S; impl Sink for S { fn delivered(&mut self, f: regs::FuncId, q: u16, t: models::time::Time, s: &mut dyn Iterator<Item=&[u8]>) { println!("deliv {f:?} {q} {t:?} {}", s.map(|s| s.len()).sum::<usize>()); }
      fn sent(&mut self, _: regs::PortId, _: testbench::card::WireFrame) {} fn observed(&mut self, o: models::observation::Observation) { println!("{o:?}"); } }
    let _ = &mut frames;
    let mut run = Run::start(card.make(&setup.shape).unwrap(), &setup).unwrap();
    let r = run.replay(&mut frames.iter(), &mut [].iter(), &mut S);
    println!("{r:?} {:?}", run.tally());
    for d in run.drivers() { for p in d.queues() { println!("{:?} pending {} {:?} state {:?}", p.rx.qid(), p.rx.has_pending(), p.rx.counters(), p.rx.state()); } }
}
