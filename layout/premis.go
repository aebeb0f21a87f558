package layout

// PremisTerms are the Library of Congress's terms for events, by their words their codes:
// http://id.loc.gov/vocabulary/preservation/eventType/CODE. They must not be changed.
func PremisTerms() map[string]string { return premisTerms }

var premisTerms = map[string]string{
	"accession": "acc", "appraisal": "app", "capture": "cap", "compression": "com", "compiling": "cop", "creation": "cre",
	"deaccession": "dea", "decompression": "dec", "deletion": "del", "decryption": "der", "digital signature validation": "dig",
	"dissemination": "dis", "digital signature generation": "dsg", "displaying": "dsp", "encryption": "enc", "execution": "exe",
	"exporting": "exp", "extraction": "ext", "forensic feature analysis": "ffa", "filename change": "fil", "fixity check": "fix",
	"format identification": "for", "imaging": "ima", "ingestion end": "ine", "ingestion": "ing", "ingestion start": "ins",
	"interpreting": "int", "information package creation": "ipc", "information package merging": "ipm",
	"information package splitting": "ips", "metadata extraction": "mee", "metadata modification": "mem",
	"message digest calculation": "mes", "migration": "mig", "modification": "mod", "normalization": "nor", "packing": "pac",
	"policy assignment": "poa", "printing": "prt", "quarantine": "qua", "recovery": "rec", "redaction": "red",
	"refreshment": "ref", "rendering": "ren", "replication": "rep", "transfer": "tra", "unpacking": "unp", "unquarantine": "unq",
	"validation": "val", "virus check": "vir",
}
