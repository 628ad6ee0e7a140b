//! Secret content on the command line.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use clap::Args;
use periapt_host_api::{
    secret::{SecretData, content::MAX_CONTENT_BYTES},
    yaml,
};

use crate::{
    error::{Explain as _, Failure, Result},
    input,
};

/// The suffix of a key whose value is a file's name.
const FILE_SUFFIX: &str = "#file";

/// The largest file of keys and values, in bytes: all content, and the YAML around it.
const MAX_FILE_BYTES: u64 = 2 * MAX_CONTENT_BYTES as u64;

/// A secret's content.
#[derive(Debug, Args)]
pub(super) struct ContentArgs {
    /// Keys and values
    #[arg(value_name = "KEY[#base64|#file]=VALUE")]
    values: Vec<String>,
    /// A YAML file of keys and values
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl ContentArgs {
    /// Returns the content; none if none was given.
    pub(super) fn read(&self) -> Result<Option<SecretData>> {
        if self.values.is_empty() && self.file.is_none() {
            return Ok(None);
        }
        let mut texts: BTreeMap<String, String> = match &self.file {
            Some(file) => {
                let text = input::text_within(file, MAX_FILE_BYTES)?;
                yaml::parse(&text).explain(|| format!("cannot read {}", file.display()))?
            }
            None => BTreeMap::new(),
        };
        for value in &self.values {
            let (key, value) = value
                .split_once('=')
                .filter(|(key, _)| !key.is_empty())
                .ok_or_else(|| Failure::new(format!("key value {value:?} not valid")))?;
            texts.insert(key.to_owned(), value.to_owned());
        }
        let mut content = BTreeMap::new();
        for (key, value) in texts {
            match key.strip_suffix(FILE_SUFFIX) {
                Some(key) => {
                    let bytes = input::bytes(Path::new(&value), MAX_FILE_BYTES)?;
                    content.insert(format!("{key}#base64"), base64_of(key, bytes)?);
                }
                None => {
                    content.insert(key, value);
                }
            }
        }
        SecretData::from_texts(content).map(Some).map_err(|error| Failure::new(error.to_string()))
    }
}

fn base64_of(key: &str, bytes: Vec<u8>) -> Result<String> {
    let one = SecretData::from_values([(key.to_owned(), bytes)]);
    let one = one.map_err(|error| Failure::new(error.to_string()))?;
    one.value(&format!("{key}#base64")).ok_or_else(|| Failure::new(format!("key {key:?} not valid")))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(values: &[&str], file: Option<PathBuf>) -> Result<Option<SecretData>> {
        ContentArgs { values: values.iter().map(|value| (*value).to_owned()).collect(), file }.read()
    }

    #[test]
    fn content_comes_from_arguments_and_files() {
        let directory = tempfile::tempdir().unwrap();
        let (pem, yaml) = (directory.path().join("pem"), directory.path().join("yaml"));
        fs::write(&pem, "from a file").unwrap();
        fs::write(&yaml, "user: bob\nblob#base64: aGk=\n").unwrap();
        let file = format!("cert#file={}", pem.display());
        let content = read(&["password=a=b", &file], Some(yaml)).unwrap().unwrap().texts();
        let expected = [("blob", "hi"), ("cert", "from a file"), ("password", "a=b"), ("user", "bob")];
        assert_eq!(content, expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
        assert_eq!(read(&[], None).unwrap(), None);
        assert_eq!(read(&["s3cret"], None).unwrap_err().to_string(), "key value \"s3cret\" not valid");
        assert_eq!(read(&["a b=x"], None).unwrap_err().to_string(), "key \"a b\" not valid");
    }
}
