use testbench::properties::{self, Config};
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let full = args.get(1).is_some_and(|s| s == "full"); let cases = args.get(1).filter(|_| !full).map(|s| s.parse::<u32>().unwrap());
    let seed = args.get(2).map(|s| s.parse().unwrap()).unwrap_or(1);
    for p in properties::all().iter().filter(|p| args[0] == "all" || p.name == args[0]) {
        let t = std::time::Instant::now();
        let config = Config { cases: cases.unwrap_or(if full { p.full } else { p.quick }), seed, folder: std::path::Path::new("/tmp/t-props/out"), progress: &|_, _| {} };
        match p.run(&config) {
            Ok(r) => println!("{} ok {} cases {:?}\n   {}", p.name, r.cases, t.elapsed(), r.coverage.join("\n   ")),
            Err(e) => println!("{} FAILED {:?}\n{e}", p.name, t.elapsed()),
        }
    }
}
