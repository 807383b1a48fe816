//! `onic diff`: each class is told, what is ignored is not, and the code says how it went.

mod common;

use common::{Folder, capture, schema, udp};

fn of(change: impl Fn(&mut Vec<Vec<u8>>)) -> (Folder, Vec<u8>) {
    let folder = Folder::new();
    let mut frames = udp(30);
    folder.file("a.pcapng", &capture(&frames));
    change(&mut frames);
    let bytes = capture(&frames);
    folder.file("b.pcapng", &bytes);
    (folder, bytes)
}

fn run(change: impl Fn(&mut Vec<Vec<u8>>), ignore: &str) -> (i32, String) {
    let (folder, _) = of(change);
    let ran = folder.onic(&["diff", "a.pcapng", "b.pcapng", "--ignore", ignore]);
    (ran.code, ran.out())
}

#[test]
fn classes() {
    assert_eq!(run(|_| {}, "time").0, 0);
    for (what, class) in [
        (&(|frames: &mut Vec<Vec<u8>>| drop(frames.remove(7))) as &dyn Fn(&mut Vec<Vec<u8>>), "1 lost"),
        (&|frames| frames.insert(7, vec![9; 60]), "1 extra"),
        (&|frames| frames.swap(3, 4), "1 reordered"),
        (&|frames| frames[5][50] ^= 1, "1 corrupt"),
        (&|frames| frames[5].push(0), "1 wrong length"),
    ] {
        let (code, out) = run(what, "time");
        assert_eq!(code, 1, "{out}");
        assert!(out.ends_with(&format!("{class}\n")), "{class}: {out}");
    }
}

#[test]
fn byte_field_and_values_are_told() {
    let (_, out) = run(|frames| frames[5][36] ^= 0xff, "time");
    assert!(out.contains("corrupt, expected frame 5, first at byte 36, udp.dstport: expected 0009, got ff09"), "{out}");
}

#[test]
fn what_is_ignored_is_not_compared() {
    assert_eq!(run(|frames| frames[5][36] ^= 0xff, "time,udp.dstport").0, 0);
    assert_eq!(run(|frames| frames[5].extend([0; 6]), "time,padding").0, 0);
    let (folder, _) = of(|_| {});
    folder
        .onic(&["diff", "a.pcapng", "b.pcapng", "--ignore", "ip.chksum"])
        .code(2)
        .says("--ignore ip.chksum: no such thing");
}

#[test]
fn times_count_unless_ignored() {
    let folder = Folder::new();
    let frames = udp(3);
    folder.file("a.pcapng", &capture(&frames));
    folder.file("b.pcapng", &capture(&[frames[..2].to_vec(), vec![frames[2].clone()]].concat()));
    folder.onic(&["diff", "a.pcapng", "b.pcapng"]).code(0);
    // One frame less in front: all others are a microsecond off.
    folder.file("c.pcapng", &capture(&frames[1..]));
    let ran = folder.onic(&["diff", "a.pcapng", "c.pcapng"]).code(1);
    assert!(ran.out().contains("1 lost, 2 side field"), "{}", ran.out());
    let ran = folder.onic(&["diff", "a.pcapng", "c.pcapng", "--ignore", "time"]).code(1);
    assert!(ran.out().ends_with("1 lost\n"), "{}", ran.out());
}

#[test]
fn codes() {
    let folder = Folder::new();
    folder.file("none.pcapng", &capture(&[]));
    let whole = capture(&udp(10));
    folder.file("whole.pcapng", &whole);
    folder.file("cut.pcapng", &whole[..whole.len() - 10]);
    folder.onic(&["diff", "none.pcapng", "none.pcapng"]).code(4);
    folder.onic(&["diff", "whole.pcapng", "none.pcapng"]).code(1);
    folder.onic(&["diff", "cut.pcapng", "cut.pcapng"]).code(2).says("the file is cut");
    folder.onic(&["diff", "whole.pcapng", "cut.pcapng"]).code(1).says("the file is cut");
    folder.onic(&["diff", "whole.pcapng", "nowhere.pcapng"]).code(2);
    folder.onic(&["diff", "whole.pcapng"]).code(2);
    folder.onic_with(&["diff", "whole.pcapng", "-"], &whole).code(0);
}

#[test]
fn json_is_as_its_schema_says() {
    let (folder, _) = of(|frames| {
        frames[5][36] ^= 0xff;
        frames.remove(20);
    });
    let described = folder.onic(&["schema", "diff"]).code(0).json();
    let json = folder.onic(&["diff", "a.pcapng", "b.pcapng", "--ignore", "time", "--json"]).code(1).json();
    schema::check(&described, &json).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(json["classes"], serde_json::json!({ "corrupt": 1, "lost": 1 }));
    assert_eq!(json["differences"][0]["field"], "udp.dstport");
    let json = folder.onic(&["diff", "a.pcapng", "a.pcapng", "--json"]).code(0).json();
    schema::check(&described, &json).unwrap_or_else(|why| panic!("{why}"));
}
