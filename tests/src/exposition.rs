//! The metrics that a process exposes, as Prometheus reads them.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    path::Path,
};

use anyhow::{Context as _, ensure};

/// The series of an exposition, by the names of their samples.
#[derive(Debug, Clone, Default)]
pub struct Scrape {
    samples: BTreeMap<String, Vec<ScrapedSample>>,
}

/// A series with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct ScrapedSample {
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The value.
    pub value: f64,
}

impl Scrape {
    /// Scrapes `/metrics` at an address such as `127.0.0.1:17070`.
    pub fn of(address: &str) -> anyhow::Result<Self> {
        Self::over(TcpStream::connect(address).with_context(|| address.to_owned())?)
    }

    /// Scrapes `/metrics` on a controller's socket.
    pub fn on_socket(path: &Path) -> anyhow::Result<Self> {
        Self::over(UnixStream::connect(path).with_context(|| path.display().to_string())?)
    }

    fn over(mut stream: impl Read + Write) -> anyhow::Result<Self> {
        write!(stream, "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("an answer without a body")?;
        ensure!(head.starts_with("HTTP/1.1 200 "), "{head}");
        Self::read(body)
    }

    /// Reads an exposition in Prometheus' text form.
    pub fn read(text: &str) -> anyhow::Result<Self> {
        let mut all = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let (series, value) = line.rsplit_once(' ').with_context(|| line.to_owned())?;
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            let labels = labels.strip_suffix('}').with_context(|| line.to_owned())?;
            // No value of ours has a comma or a quote.
            let pairs = labels.split(',').filter(|pair| !pair.is_empty()).map(|pair| {
                let (label, value) = pair.split_once('=').with_context(|| line.to_owned())?;
                Ok((label.to_owned(), value.trim_matches('"').to_owned()))
            });
            let sample = ScrapedSample {
                labels: pairs.collect::<anyhow::Result<_>>()?,
                value: value.parse().with_context(|| line.to_owned())?,
            };
            all.samples.entry(name.to_owned()).or_default().push(sample);
        }
        Ok(all)
    }

    /// Adds the series of another process.
    pub fn add(&mut self, other: Self) {
        for (name, samples) in other.samples {
            self.samples.entry(name).or_default().extend(samples);
        }
    }

    /// Returns the samples of a name.
    pub fn samples(&self, name: &str) -> &[ScrapedSample] {
        self.samples.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the names of the labels of a name's samples.
    pub fn labels(&self, name: &str) -> BTreeSet<&str> {
        self.samples(name).iter().flat_map(|sample| sample.labels.keys().map(String::as_str)).collect()
    }

    /// Returns the sum of the samples of a name whose labels have these values.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let fits = |sample: &&ScrapedSample| {
            labels.iter().all(|(label, value)| sample.labels.get(*label).is_some_and(|has| has == value))
        };
        self.samples(name).iter().filter(fits).map(|sample| sample.value).sum()
    }
}
