CREATE TABLE IF NOT EXISTS cases (
    hash TEXT PRIMARY KEY, kernel TEXT NOT NULL, case_key TEXT NOT NULL, code TEXT NOT NULL, recipe TEXT NOT NULL,
    versions TEXT NOT NULL, values_json TEXT NOT NULL, chip TEXT NOT NULL, outcome TEXT NOT NULL,
    findings TEXT NOT NULL, error TEXT NOT NULL, max_error REAL, low_precision REAL, remaining REAL, estimate_us REAL,
    seconds REAL NOT NULL, finished REAL NOT NULL, left_out INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sweeps (
    sweep TEXT PRIMARY KEY, kernel TEXT NOT NULL, file TEXT NOT NULL, code TEXT NOT NULL, call TEXT NOT NULL,
    began REAL NOT NULL, wanted INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS members (
    sweep TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (sweep, hash)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS cases_by_key ON cases (case_key);
