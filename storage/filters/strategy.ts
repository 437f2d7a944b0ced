/**
 * Thresholds at which one way of finding contacts gives way to the next (docs/decisions/0007-filters.md), as
 * numbers of rows, measured at a million contacts. An object, so that tests can reach each way with few rows.
 */
export const filterStrategy = {
  /** Candidate contact ids that are carried through a query. */
  maxCandidates: 10_000,
  /** The same where a statement must be short. */
  maxShortCandidates: 3000,
  /** Conditions that are ranked by how many contacts of a sample meet them. */
  maxRankedConditions: 6,
  /** Conditions that are probed before it is settled that none is rare. */
  maxProbes: 3,
  /** Ids of an index for each candidate, up to which they are searched for in a hash of the candidates. */
  maxListedPerHash: 7,
  /** Contacts that an index lists in the time that one candidate is looked up in. */
  listedPerLookUp: 20,
  /** Contacts with some labels from which on it is found out whether looking candidates up takes less than a list. */
  minListed: 20_000,
  /** Rows that are tried, along the list and by ids, before the list is scanned further. */
  maxFirstRows: 2000,
  /** Rows that a list is scanned for its first page; beyond that all matches are computed. */
  maxScannedRows: 20_000,
  /** Matches of a text in names and phones that are sorted and counted with their first page. */
  maxSortedMatches: 1000,
  /** Totals that are exact wherever an index finds the matches. */
  maxExactTotal: 10_000,
  /** Contacts of a workspace in which the total of a list is always counted. */
  maxCountedContacts: 5000,
  /** The same of a filter where a sample shows few matches. */
  maxCountedForFew: 100_000,
  /** Contacts that one step of a count reads. */
  countStepContacts: 100_000,
  /** Contacts in a sample, and the number of places in the table that they are read from. */
  sampleContacts: 1000,
  samplePlaces: 40,
  /** Matches in a sample from which the share of matches can be estimated. */
  minSampleMatches: 3,
}
