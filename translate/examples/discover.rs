//! Prints what discovery finds in an ELF file.
#![allow(missing_docs, clippy::unwrap_used)]
use tranship_translate::{discover::discover, elf::GuestElf};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let t = std::time::Instant::now();
    let elf = GuestElf::parse(std::fs::read(&args[1]).unwrap()).unwrap();
    let parsed = t.elapsed();
    let t = std::time::Instant::now();
    let d = discover(&elf);
    let time = t.elapsed();
    if args.get(2).is_some_and(|a| a == "who") {
        let want = u64::from_str_radix(&args[3], 16).unwrap();
        for r in &d.regions {
            for b in r.blocks.values() {
                let s = format!("{:?}", b.exit);
                if s.contains(&format!("({want})"))
                    || s.contains(&format!(" {want},"))
                    || s.contains(&format!("[{want},"))
                    || s.contains(&format!(" {want}]"))
                    || (b.start <= want && want < b.end)
                {
                    println!("region {:x} block {:x}..{:x} {:x?}", r.entry, b.start, b.end, b.exit);
                }
            }
        }
        return;
    }
    if args.get(2).is_some_and(|a| a == "live") {
        use tranship_translate::region::*;
        for r in &d.regions {
            for b in r.blocks.values() {
                if let Exit::Call { target, next: Edge::Block(n) } = b.exit {
                    let l = r.blocks[&n].flags_live_in;
                    if l.iter().count() > 1 {
                        println!(
                            "after call to {:x?} at {n:x} in {:x}: {:?}",
                            target,
                            r.entry,
                            l.iter().collect::<Vec<_>>()
                        );
                    }
                }
            }
            let l = r.blocks[&r.entry].flags_live_in;
            if l.iter().count() > 1 {
                println!(
                    "entry {:x} taken {} {:?}",
                    r.entry,
                    d.address_taken.contains(&r.entry),
                    l.iter().collect::<Vec<_>>()
                );
            }
        }
        return;
    }
    if args.get(2).is_some_and(|a| a == "region") {
        for r in &d.regions {
            if r.entry == u64::from_str_radix(&args[3], 16).unwrap() {
                for b in r.blocks.values() {
                    println!(
                        "{:x}..{:x} {:x?} in {:?} out {:?}",
                        b.start,
                        b.end,
                        b.exit,
                        b.flags_live_in.iter().collect::<Vec<_>>(),
                        b.flags_live_out.iter().collect::<Vec<_>>()
                    );
                }
                println!("labels {:x?} headers {:x?} {:x?}", r.labels, r.loop_headers, r.registers);
            }
        }
        return;
    }
    if args.get(2).is_some_and(|a| a == "entries") {
        for r in &d.regions {
            println!("E {:x}", r.entry);
            for l in &r.labels {
                println!("L {l:x}");
            }
            for b in r.blocks.keys() {
                println!("B {b:x}");
            }
        }
        return;
    }
    let r = &d.report;
    println!(
        "parse {parsed:?} discover {time:?} symbols {} frames {} pointers {}",
        elf.symbols.len(),
        elf.frames.len(),
        elf.pointers.len()
    );
    println!(
        "text {} covered {} padding {} missing {} ({:.3} %)",
        r.text_bytes,
        r.covered_bytes,
        r.padding_bytes,
        r.text_bytes - r.covered_bytes - r.padding_bytes,
        100.0 * (r.covered_bytes + r.padding_bytes) as f64 / r.text_bytes as f64
    );
    println!(
        "regions {} labels {} blocks {} headers {} tables {} proven {} unresolved {} undecodable {} dropped {}",
        d.regions.len(),
        d.regions.iter().map(|r| r.labels.len()).sum::<usize>(),
        r.blocks,
        d.regions.iter().map(|r| r.loop_headers.len()).sum::<usize>(),
        r.jump_tables,
        d.regions
            .iter()
            .flat_map(|r| r.blocks.values())
            .filter(|b| matches!(&b.exit, tranship_translate::region::Exit::Switch(t) if t.proven))
            .count(),
        r.unresolved_jumps.len(),
        r.undecodable.len(),
        r.dropped_entries
    );
    println!(
        "flags at entries {:?} after calls {:?}",
        d.flags_live_at_entries.iter().collect::<Vec<_>>(),
        d.flags_live_after_calls.iter().collect::<Vec<_>>()
    );
    use tranship_translate::region::RegisterSet;
    let all = |f: &dyn Fn(&tranship_translate::region::Region) -> RegisterSet| {
        d.regions.iter().filter(|r| f(r) == RegisterSet::ALL).count()
    };
    println!(
        "regions that may write everything {} read everything {}",
        all(&|r| r.registers.writes),
        all(&|r| r.registers.reads)
    );
    println!("unresolved {:x?}", &r.unresolved_jumps);
    println!("undecodable {:x?}", &r.undecodable[..r.undecodable.len().min(20)]);
}
