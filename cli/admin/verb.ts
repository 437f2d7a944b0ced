import type { Config } from '../../server/config.ts'
import type { WorkspaceRow } from '../../storage/admin.ts'
import type { Db } from '../../storage/database.ts'
import type { Io } from '../io.ts'

/** What one run of a command works with. The database is opened, and migrated, when it is first asked for. */
export type Session = {
  readonly io: Io
  readonly config: Config
  /** Time of the run, ISO 8601 UTC. */
  readonly now: string
  readonly db: () => Promise<Db>
  /** The workspace of `--workspace`, or the only one there is. */
  readonly workspace: () => Promise<WorkspaceRow>
}

export type Flags = Readonly<Record<string, string | boolean | undefined>>

/** A record, or `{data: […]}`. */
export type Result = Record<string, unknown>

export type Verb = {
  readonly name: string
  /** What stands in its place after the verb, such as `<id>`, and what it is. */
  readonly argument?: readonly [term: string, about: string]
  readonly summary: string
  readonly about?: string
  /** Flags as commander writes them. `required` ones come first in help. */
  readonly required?: readonly (readonly [flags: string, about: string])[]
  readonly options?: readonly (readonly [flags: string, about: string])[]
  /** It works inside one workspace, and takes `--workspace`. */
  readonly scoped: boolean
  /** Columns of a list. */
  readonly columns?: readonly string[]
  readonly run: (session: Session, flags: Flags, argument: string) => Promise<Result>
}

export type Group = { readonly name: string; readonly summary: string; readonly verbs: readonly Verb[] }
