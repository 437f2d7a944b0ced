/**
 * Where one way of finding contacts gives place to the next (docs/decisions/0007-filters.md). Numbers of
 * rows, measured at a million contacts. An object, so that tests can bring each way about with few rows.
 */
export const strategy = {
  /** More contact ids than this are not carried through a query. */
  probe: 3000,
  /** Conditions that are told apart by how many contacts of a sample meet them. */
  leads: 6,
  /** Conditions that are probed before it is settled that none is rare. */
  probes: 3,
  /** Rows that a list is walked for its first page; beyond that the whole answer is computed. */
  walk: 20_000,
  /** Up to so many matches are counted with their first page. */
  few: 1000,
  /** In so small a workspace the total of a list is counted whatever is asked. */
  countable: 5000,
  /** Contacts that one step of a count looks at. */
  step: 100_000,
  /** Contacts that an estimate looks at, in so many places. */
  sample: 1000,
  places: 40,
  /** Matches among them that tell how common a match is. */
  telling: 3,
}
