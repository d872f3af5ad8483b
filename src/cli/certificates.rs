//! Reads the certificates that are trusted beside the built-in ones.
//!
//! A file that was named for uncut must be usable. `SSL_CERT_FILE` and `SSL_CERT_DIR` may have been
//! set for other programs, and wrongly: they are looked at only where TLS will be spoken, and what
//! can't be used is a warning.

use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::args::{Origin, PathArg, UsageError};
use super::inputs::{self, BaseDir};
use crate::fs::open_regular;
use crate::openai::Roots;

/// The longest file of certificates, in bytes; all the issuers of a system are some 200 KB.
const FILE_MAX: u64 = 16 << 20;

/// The variable with directories of certificates.
pub(super) const DIRECTORIES: &str = "SSL_CERT_DIR";

/// What is trusted, and what was odd about reading it.
#[derive(Debug, Default)]
pub(super) struct Certificates {
    pub(super) roots: Roots,
    pub(super) warnings: Vec<String>,
}

impl Certificates {
    /// Adds those of the file that `--ca-file` or a variable names; `tls` is whether TLS will be
    /// spoken.
    ///
    /// # Errors
    ///
    /// A file that was named for uncut can't be used.
    pub(super) fn add_file(
        &mut self,
        file: &PathArg,
        start: BaseDir<'_>,
        tls: bool,
    ) -> Result<(), UsageError> {
        let PathArg { origin, path } = file;
        // Ours have our name in front, and are the only ones of which we know that they are meant.
        let shared = matches!(origin, Origin::Variable(name) if !name.starts_with("UNCUT_"));
        if shared && !tls {
            return Ok(());
        }
        let path = start.resolve(path);
        match self.read(&path) {
            Ok(0) => {}
            Ok(count) => {
                let problem = format!("certificates in it that can't be used: {count}");
                self.warnings.push(inputs::unusable(origin, &path, problem).to_string());
            }
            Err(problem) if shared => {
                let problem = format!("{problem}; the built-in issuers are trusted alone");
                self.warnings.push(inputs::unusable(origin, &path, problem).to_string());
            }
            Err(problem) => return Err(inputs::unusable(origin, &path, problem)),
        }
        Ok(())
    }

    /// Adds what is in the directories of a list such as a search path.
    pub(super) fn add_directories(&mut self, list: &OsStr, start: BaseDir<'_>) {
        for directory in std::env::split_paths(list).filter(|path| !path.as_os_str().is_empty()) {
            let directory = start.resolve(&directory);
            if let Err(problem) = self.add_directory(&directory) {
                let origin = Origin::Variable(DIRECTORIES);
                self.warnings.push(inputs::unusable(&origin, &directory, problem).to_string());
            }
        }
    }

    /// Adds every file of a directory that is called like a certificate. `OpenSSL` reads only those
    /// that are called by their hash; a mounted secret is not.
    fn add_directory(&mut self, directory: &Path) -> Result<(), String> {
        let entries = fs::read_dir(directory).map_err(|error| error.to_string())?;
        let entries: Result<Vec<_>, _> = entries.collect();
        let paths = entries.map_err(|error| error.to_string())?;
        let mut paths: Vec<PathBuf> = paths.into_iter().map(|entry| entry.path()).collect();
        paths.retain(|path| is_called_like_a_certificate(path));
        paths.sort();
        let mut failed = Vec::new();
        for path in &paths {
            if let Err(problem) = self.read(path) {
                let name = path.file_name().unwrap_or_default();
                failed.push(format!("{}: {problem}", name.display()));
            }
        }
        match (failed.first(), paths.len()) {
            (_, 0) => Err("there is no *.pem, *.crt or *.0 in it".to_owned()),
            (Some(first), _) if failed.len() > 1 => {
                Err(format!("{} files can't be used; {first}", failed.len()))
            }
            (Some(first), _) => Err(first.clone()),
            (None, _) => Ok(()),
        }
    }

    /// Adds the certificates of a file, and returns how many of them can't be used.
    fn read(&mut self, path: &Path) -> Result<usize, String> {
        let mut bytes = Vec::new();
        let (file, _) = open_regular(path).map_err(|error| error.to_string())?;
        file.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        if bytes.len() as u64 > FILE_MAX {
            return Err(format!("is longer than {FILE_MAX} bytes"));
        }
        self.roots.add_pem(&bytes)
    }
}

fn is_called_like_a_certificate(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default();
    ["pem", "crt", "0"].iter().any(|known| ending.eq_ignore_ascii_case(known))
}
