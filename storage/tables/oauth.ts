import { bigint, bytes, nullable, text, textArray, timestamp, type Table } from './columns.ts'

/** OAuth for hosted clients (docs/oauth.md). */
export const oauthTables = {
  oauth_records: {
    kind: text(),
    hash: bytes(),
    grant_hash: nullable(bytes()),
    scopes: nullable(textArray()),
    network: nullable(text()),
    payload: text(),
    created_at: timestamp(),
    expires_at: timestamp(),
    consumed_at: nullable(timestamp()),
  },
  oauth_grants: {
    workspace_id: bigint(),
    key_id: bigint(),
    grant_hash: bytes(),
    client_id: text(),
    created_at: timestamp(),
  },
  login_codes: {
    workspace_id: bigint(),
    hash: bytes(),
    staff_id: bigint(),
    scopes: textArray(),
    key_expires_at: nullable(timestamp()),
    created_at: timestamp(),
    expires_at: timestamp(),
  },
} satisfies Record<string, Table>
