// Package bags reads, checks and writes BagIt bags (RFC 8493, reading 0.93 to 0.97 as
// well). It trusts nothing it is given.
//
// It owns bags: Validate, Create, Update, Serialize, FindBag. It stands above its
// sub-packages, except fetch, which stands above it:
//
//	files     listing, hashing and placing files; Error and Rule
//	finding   one thing wrong with a bag
//	tagfile   the lines of tag files
//	archive   archives: recognise, list, check, extract, pack, read in place
//	profile   BagIt profiles
//	fetch     completing a bag by fetch.txt
//
// It must not know items, steps or workspaces. It keeps no state; each call starts its
// own goroutines, bounded by Workers, and waits for them.
//
// # Two kinds of error
//
// A fault of the archive or the content is a *files.Error: it names the
// archive, the member (percent-encoded) and the Rule that was broken. Every
// other error is about the machine: a disk that cannot be read or is full.
// Validate keeps the same line: what is wrong with the bag is a Finding in its
// Report, and its error return is about the machine alone.
//
// # Bags
//
// Validate reads a bag in a folder, or serialized in a zip or a tar, plain or
// compressed, which it lists and hashes where it stands. A finding is an
// error where the RFC says MUST and the declared version knew the rule, a warning
// otherwise. Complete and Valid are separate answers (section 3): a bag is complete
// when no error but mismatch was found, and valid when no error was found and every
// digest was computed. A bag whose only errors are unfetched files is incomplete, not
// wrong.
//
// A last line without its end is a warning only, though 2.3 has a MUST there: it
// loses nothing, and much in use writes it.
//
// Create and CreateInPlace make bags, Update, AddManifest and SetInfo change them,
// Fetch completes them, Serialize packs them. Calls that change a bag where it
// stands do so by a plan that survives a kill (change_folder.go). Profile is a BagIt
// profile, 1.1.0 to 1.4.0; a constraint that is not met is a finding with the code
// profile that names it.
//
// # What RFC 8493 requires, and the tests that hold this package to it
//
// TestOddBags has one bag for nearly every line, in a form that strangers make it in.
//
//	2: a base directory with bagit.txt, a manifest and data/
//	    TestRules/2: no bagit.txt; TestRules/2.1.2: no data/; TestRules/2.1.3: no manifest
//	2: the base directory may have any name
//	    TestWhereTheBagLiesInTheArchive
//	2.1.1: bagit.txt has exactly two lines, in this order
//	    TestRules/2.1.1: lines swapped; TestRules/2.1.1: a third line; TestRules/2.1.1: an empty line; TestRules/2.1.1: no encoding; TestRules/2.1.1: no version
//	2.1.1: the version is M.N, and known
//	    TestRules/2.1.1: not a version; TestRules/2.1.1: unknown version; TestUnknownVersionsAreRefused; TestVersionsAreRead
//	2.1.1: bagit.txt is UTF-8 without a byte-order mark
//	    TestRules/2.1.1: not UTF-8; TestRules/2.1.1: byte-order mark
//	2.1.1: the encoding is a registered one
//	    TestRules/2.1.1: unknown encoding; TestOddBags/an encoding nobody knows; TestOddBags/UTF-7; TestOddBags/ISO-10646-UCS-2; TestAllowed
//	2.1.2: the base directory contains data/
//	    TestRules/2.1.2: no data/; TestRules/2.1.2: empty payload
//	2.1.3: at least one payload manifest
//	    TestRules/2.1.3: no manifest
//	2.1.3: every payload manifest lists every payload file exactly once
//	    TestRules/2.1.3: file in no manifest; TestRules/2.1.3: file in one manifest of two; TestRules/2.1.3: listed twice; TestFileInOnlyOneManifestIsInvalidSince10
//	2.1.3: a line is a hexadecimal digest of either case, white space, a path
//	    TestRules/2.1.3: no path; TestRules/2.1.3: not hexadecimal; TestRules/2.1.3: wrong length; TestUpperCaseDigestsAreAccepted; TestAllowed
//	2.1.3: no file outside data/
//	    TestRules/2.1.3: outside data/; TestRules/2.1.3: beside data/; TestPayloadManifestThatListsOutsideDataIsInvalid
//	2.1.3: CR, LF and % are percent-encoded, and nothing else is
//	    TestRules/2.1.3: bare percent; TestCorrectPercentEncodingIsAccepted; TestBagOfAnEncodedLookingNameIsReadByItsMaker; TestAllowed
//	2.1.3: the slash separates, here and in fetch.txt
//	    TestOddBags/backslashes; TestOddBags/a name with a backslash
//	2.1.3: no directories
//	    TestRules/2.1.3: a folder
//	2.2.1: every tag manifest lists every payload manifest
//	    TestRules/2.2.1: payload manifest not in the tag manifest
//	2.2.1: no payload file and no tag manifest in a tag manifest
//	    TestRules/2.2.1: a payload file in the tag manifest; TestRules/2.2.1: a tag manifest in a tag manifest
//	2.2.1: tag manifests should list the same files, and all others
//	    TestRules/2.2.1: tag manifests that differ; TestRules/2.2.1: tag file not in the tag manifest
//	2.2.2: label, colon, one white space, value
//	    TestRules/2.2.2: no colon; TestRules/2.2.2: no space after the colon; TestRules/2.2.2: space before the colon; TestRules/2.2.2: begins with a continued line
//	2.2.2: before 1.0, more white space is accepted around the colon
//	    TestRules/2.2.2: space before the colon, 0.97
//	2.2.2: repeated labels and their order are kept, long values folded
//	    TestFieldsRoundTrip; TestSetInfo; TestCreateIsValidAndDeterministic
//	2.2.2: Payload-Oxum once, and OCTETS.FILES
//	    TestRules/2.2.2: Payload-Oxum twice; TestRules/2.2.2: Payload-Oxum syntax; TestRules/2.2.2: Payload-Oxum wrong
//	2.2.2: an empty line is no element, and no error
//	    TestOddBags/an empty line between
//	2.2.2: Payload-Oxum alone finds no bag valid
//	    TestLevels
//	2.2.3: every file in fetch.txt is in every payload manifest
//	    TestRules/2.2.3: in no manifest; TestFetchOfATagFileOrAnUnlistedFileIsInvalid
//	2.2.3: no tag files in fetch.txt
//	    TestRules/2.2.3: a tag file; TestFetchOfATagFileOrAnUnlistedFileIsInvalid
//	2.2.3: an absolute URL, a length or -, a path
//	    TestRules/2.2.3: no length; TestRules/2.2.3: a relative URL; TestFetchOfATagFileOrAnUnlistedFileIsInvalid
//	2.2.4: other tag files are octets; listed ones are verified
//	    TestEveryChangeIsFound; TestAnyChangeIsFound
//	2.3: lines end in LF, CR or CR LF
//	    TestAllowed; TestRules/2.3: no last line end
//	2.3: the declared encoding; a byte-order mark is a warning, but in bagit.txt
//	    TestRules/2.3: not UTF-8; TestRules/2.3: byte-order mark; TestOddBags/US-ASCII declared, UTF-8 written; TestOddBags/Shift_JIS with bytes that mean nothing; TestOddBags/UTF-16 all over; TestAllowed
//	2.4: algorithms by their normalised names
//	    TestRules/2.4: a name not normalised; TestRules/2.4: unknown algorithm; TestUpdateSpellsAlgorithmsInTheRightWay
//	2.4: SHA-256 and SHA-512; MD5 and SHA-1 for older bags
//	    TestHashWideEqualsPlain; TestRules/2.4: weak algorithm; TestAddManifest
//	3: every listed file is there, payload and tag files
//	    TestRules/3: a payload file is missing; TestRules/3: a tag file is missing
//	3: every payload file in every manifest since 1.0, in one before
//	    TestFileInOnlyOneManifestIsInvalidSince10
//	3: every digest of every manifest is verified
//	    TestEveryChangeIsFound; TestAnyChangeIsFound; TestLevels
//	5.1: nothing outside of the bag is touched
//	    TestRules/5: absolute; TestRules/5: parent; TestLinkedFolderWithUnlistedContentIsInvalid; TestListedFIFODoesNotHang; TestHostilePlansMoveNothing
//	5.2, 5.3: URLs and lengths in fetch.txt are not trusted
//	    TestFetchAllowsNothingUnlessListed; TestFetchFollowsNoRedirectionElsewhere; TestFetchComparesSizeAndDigest
//	6.1: differences of normalisation and case, and names that Windows cannot hold
//	    TestRules/6: normalisation; TestRules/6: case; TestRules/6: a device's name; TestCreateInPlaceReportsNames
//	6.1: what md5sum writes is accepted with a warning
//	    TestRules/6: md5sum's asterisk; TestRules/6: leading ./
package bags
