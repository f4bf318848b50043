//! scratch
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let set = tranship_recode::ImageSet::open(a[1].as_ref()).unwrap();
    for n in &a[2..] {
        for e in set.image(n).unwrap().entries {
            println!("{}", protobuf::text_format::print_to_string_pretty(&*e.message));
        }
    }
}
