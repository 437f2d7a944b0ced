import { sql } from 'kysely'
import type { Db } from '../database.ts'

/** A contact that is the same customer as another one. `of_id`: the other, which the service finds. */
export type ContactDouble = { id: string; phone: string | null; of_id: string | null }

/**
 * Lists contacts whose phone is an old spelling of a line that another contact has, by id: no phone finds them.
 * Others with such a phone have a key. `oldForms`: a regular expression. Reads all contacts of
 * the workspace after `after`: for administration.
 */
export const listContactsWithoutLine = async (
  db: Db,
  workspaceId: string,
  oldForms: string,
  after: string,
  limit: number,
): Promise<{ id: string; phone: string }[]> =>
  (
    await sql<{ id: string; phone: string }>`
    select id, phone from contacts
    where workspace_id = ${workspaceId} and id > ${after}::bigint and phone_key is null
      and phone ~ ${oldForms}
    order by id limit ${limit}`.execute(db)
  ).rows

/** Lists contacts with the user id of an older contact, by id. The older one gets the customer's messages. */
export const listUserIdDoubles = async (
  db: Db,
  workspaceId: string,
  after: string,
  limit: number,
): Promise<ContactDouble[]> =>
  (
    await sql<ContactDouble>`
    select id, phone, of_id from (
      select c.id, c.phone, (select min(o.id) from contacts o where o.workspace_id = c.workspace_id
        and o.chatapp_user_id = c.chatapp_user_id) as of_id
      from contacts c
      where c.workspace_id = ${workspaceId} and c.id > ${after}::bigint and c.chatapp_user_id is not null
    ) as c where of_id < id order by id limit ${limit}`.execute(db)
  ).rows
