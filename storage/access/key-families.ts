import { type RawBuilder, sql } from 'kysely'

/*
 * A key that replaces another one (`replaceKey`) is of its family, whose id is that of the first. Both are valid for a
 * while, and are one client: what an agent may still do, was refused and waits for is that of the family.
 */

/** SQL of the family of a key in `api_keys` under this alias. */
export const familyOf = (alias: string): RawBuilder<string> =>
  sql`coalesce(${sql.ref(`${alias}.family_id`)}, ${sql.ref(`${alias}.id`)})`

/** SQL of the family of the key with this id. */
export const familyOfKey = (workspaceId: string, keyId: string): RawBuilder<string> => sql`(
  select ${familyOf('f')} from api_keys f where f.workspace_id = ${workspaceId} and f.id = ${keyId}::bigint)`

/** SQL of the ids of the keys of a family. */
export const keysOfFamily = (workspaceId: string, familyId: string): RawBuilder<string> => sql`(
  select f.id from api_keys f where f.workspace_id = ${workspaceId} and ${familyOf('f')} = ${familyId}::bigint)`
