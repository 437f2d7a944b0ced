import {
  bigint,
  bigintArray,
  identity,
  integer,
  jsonb,
  nullable,
  oneOf,
  text,
  timestamp,
  withDefault,
  type Table,
} from './columns.ts'
import type { ErasureSubject } from './erasures.ts'

/** A file in an archive. `rows`: of a table; `sha256`: in hex, of the file before it is packed. */
export type ArchiveEntry = {
  name: string
  table?: string
  rows?: number
  size: number
  packed: number
  crc: number
  /** 0: stored as it is; 8: deflated. */
  method: 0 | 8
  sha256: string
}

/**
 * What a file of contacts is. `fields`: the keys of the custom fields that are its columns; `view`: what the key that
 * asked for it could see.
 */
export type ContactsFile = {
  format: 'csv' | 'jsonl'
  fields: string[]
  total: number
  view: string
}

/** Files that are made for people to download, and their parts in the media store. */
export const exportTables = {
  exports: {
    workspace_id: bigint(),
    id: identity(),
    kind: text<'person' | 'contacts'>(),
    contact_id: nullable(bigint()),
    state: withDefault(oneOf('running', 'done', 'failed', 'erased', 'expired')),
    staff_id: bigint(),
    key_id: nullable(bigint()),
    created_at: timestamp(),
    finished_at: nullable(timestamp()),
    file_until: nullable(timestamp()),
    step: withDefault(integer()),
    position: nullable(jsonb<string[]>()),
    counts: withDefault(jsonb<Record<string, number>>()),
    subject: nullable(jsonb<ErasureSubject>()),
    contacts: nullable(jsonb<ContactsFile>()),
    size: nullable(bigint()),
    sha256: nullable(text()),
    problem: nullable(text()),
  },
  export_batches: {
    workspace_id: bigint(),
    export_id: bigint(),
    no: integer(),
    contact_ids: bigintArray(),
  },
  export_parts: {
    workspace_id: bigint(),
    export_id: bigint(),
    id: identity(),
    lease_until: nullable(timestamp()),
    size: nullable(bigint()),
    entry: nullable(jsonb<ArchiveEntry>()),
  },
} satisfies Record<string, Table>
