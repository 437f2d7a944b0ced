/**
 * What an erasure does to a column of rows that stay. `cleared`: empties it, or takes out what is about the person.
 * `pseudonym`: leaves the id of the contact, which leads nowhere. `expires`: leaves it until the row goes, soon.
 */
type Treatment = 'cleared' | 'pseudonym' | 'expires'

/**
 * What an export of the person has of a table: its columns but for those in `without`, each with the reason, as a file
 * of its own, or with the rows of the table `in`. `not`: why it has nothing.
 */
export type ExportedData<Column extends string = string> =
  | { in?: string; without?: Readonly<Partial<Record<Column, string>>>; not?: never }
  | { not: string }

/** What a table holds of customers. */
export type PersonalData<Column extends string = string> = {
  /** The columns that can say something about one customer, or hold the id of the contact. No other can. */
  columns: readonly Column[]
  /** What the deletion of a contact does to its rows: removes them, takes the contact's id out, or nothing. */
  onDelete: 'removed' | 'unlinked' | 'kept'
  /** What an erasure of the person does: it removes rows, or treats each of `columns` of rows that figures need. */
  erase: 'remove' | Readonly<Partial<Record<Column, Treatment>>>
  /** What an export of the person has of it. */
  exported: ExportedData<Column>
  /** How long rows stay that no deletion removes. */
  until: string
}

/* Why columns are not in the export of a person. */
export const FOR_SEARCH = 'another form of a value that is exported, for search'
export const ARCHIVE = { not: 'the archive itself, and earlier ones' }
export const SAME = { not: 'the same for all recipients; what was sent to one is in messages' }
export const DIGEST = 'a digest, or an id of the provider for an update'
export const SECRET = 'a secret, or what repeats a call'
