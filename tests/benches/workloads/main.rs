//! A benchmark of workloads: requests to servers of units through their agent, beside the same servers without it; the time
//! from a deployment to the first page; the memory of pods that have nothing to do; and the time of a replan beside that of a
//! process.
//!
//! Run by `tools/bench workloads`; docs/performance.md explains the rows. `PERIAPT_BENCH_NGINX` is an image with nginx, and
//! `PERIAPT_BENCH_WASMTIME` wasmtime's own program; rows without theirs are left out.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "figures are its output, and how far it is")]

mod load;
mod replan;
mod site;

use std::{env, path::Path};

use load::{Figures, Place};
use site::Site;

/// The rounds, in each of which every server is asked by turns.
const ROUNDS: usize = 5;

/// The units of each charm whose idle pods are weighed.
const IDLE: usize = 4;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<_> = env::args().skip(2).collect();
    match env::args().nth(1).as_deref() {
        Some(load::CLIENT) => return load::client(&arguments),
        Some(replan::SERVICE) => return replan::service(&arguments),
        _ => {}
    }
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut site = Site::below(parent)?;
    let mut first = Vec::new();
    first.push(("a page in WebAssembly", site.deploy_page()?));
    if let Some(image) = env::var_os("PERIAPT_BENCH_NGINX") {
        first.push(("nginx in a container", site.deploy_nginx(Path::new(&image))?));
    } else {
        eprintln!("without nginx: PERIAPT_BENCH_NGINX names no image");
    }
    let wasmtime =
        env::var_os("PERIAPT_BENCH_WASMTIME").map(|program| site.serve_by_wasmtime(Path::new(&program)));
    let wasmtime = wasmtime.transpose()?;

    let mut rows: Vec<(&str, Place, Vec<Figures>)> =
        vec![("a page in WebAssembly, by its agent", site.page(), Vec::new())];
    match &wasmtime {
        Some(served) => rows.push(("the same component, by `wasmtime serve`", served.place(), Vec::new())),
        None => eprintln!("without wasmtime's own: PERIAPT_BENCH_WASMTIME names no program"),
    }
    if let Some((by_agent, inside)) = site.nginx()? {
        rows.push(("nginx in a container, by its agent", by_agent, Vec::new()));
        rows.push(("the same nginx, asked in its own network", inside, Vec::new()));
    }
    for round in 0..ROUNDS {
        for (name, place, figures) in &mut rows {
            figures.push(place.asked()?);
            eprintln!("round {round}: {name}: {:.0}/s", figures.last().map_or(0.0, |figures| figures.rate));
        }
    }

    println!(
        "| {} clients that keep connections | requests/s | beside the next row | p50 ms | p99 ms |",
        load::CLIENTS
    );
    println!("| --- | ---: | ---: | ---: | ---: |");
    let medians: Vec<Figures> = rows.iter().map(|(_, _, figures)| Figures::median(figures)).collect();
    for (number, ((name, _, _), median)) in rows.iter().zip(&medians).enumerate() {
        // Each server by its agent is beside the same one without.
        let beside = medians.get(number + 1).filter(|_| name.ends_with("by its agent"));
        let ratio = beside.map(|beside| format!("{:.2}", median.rate / beside.rate)).unwrap_or_default();
        println!("| {name} | {:.0} | {ratio} | {:.2} | {:.2} |", median.rate, median.p50, median.p99);
    }
    println!();
    println!("| from `deploy` to the first page | s |");
    println!("| --- | ---: |");
    for (name, taken) in first {
        println!("| {name} | {:.2} |", taken.as_secs_f64());
    }
    println!();
    println!("| {IDLE} idle pods | MiB each |");
    println!("| --- | ---: |");
    for (name, each) in site.idle(IDLE)? {
        println!("| {name} | {:.1} |", each / f64::from(1 << 20));
    }
    replan::measure(site.path())
}
