import { type Kysely, sql } from 'kysely'

/**
 * One contact for one phone line, however its number is spelled. phone_key: the key of the line where it is not
 * the phone itself, so that the rows of most countries are not written. provider_phone: how the provider spells
 * the phone, where that differs.
 *
 * Only contacts in old spellings are written. Where several contacts of a workspace have one line, the line is
 * that of the contact with its present spelling, else of the oldest; the others keep their phone without a key,
 * and no phone finds them any more (`wcrm admin doctor` lists them). There are no events, and `updated_at` stays.
 *
 * The new columns lock the table, so that nobody else reads or writes contacts until the end of the migration:
 * one scan, the rows in old spellings, and an index in place of another. Measured on two busy cores: 28 s for a
 * million contacts, 50,000 of them in an old spelling.
 */

/** The spellings as server/contacts/phone-lines.ts had them in this version: old form, and its key. */
const RULES: readonly (readonly [old: string, key: string, asGiven?: true])[] = [
  ['^55([1-9]{2})([6-9]\\d{7})$', '55\\19\\2'],
  ['^521([2-9]\\d{9})$', '52\\1'],
  ['^54([1-3]\\d{9})$', '549\\1', true],
  ['^225((?:0[1-3]|[457][0-3])\\d{6})$', '22501\\1'],
  ['^225([0456789][4-6]\\d{6})$', '22505\\1'],
  ['^225((?:[04578][7-9]|6[78]|9[78])\\d{6})$', '22507\\1'],
  ['^229([2-9]\\d{7})$', '22901\\1'],
  ['^237([79]\\d{7})$', '2376\\1'],
  ['^57([124-8]\\d{7})$', '5760\\1'],
  ...[
    '120 70, 121 79, 122 77, 126 76, 128 78, 123 83, 124 84, 125 85, 127 81, 129 82, 162 32',
    '163 33, 164 34, 165 35, 166 36, 167 37, 168 38, 169 39, 186 56, 188 58, 199 59',
  ]
    .flatMap((line) => line.split(', '))
    .map((pair) => pair.split(' '))
    .map(([old, present]) => [`^84${old}(\\d{7})$`, `84${present}\\1`] as const),
]

const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** Any of the old forms, by their length and beginning: cheaper for each row than all the rules. */
const MAYBE_OLD =
  '^(55[1-9]{2}[6-9]\\d{7}|521\\d{10}|54[1-3]\\d{9}|22[59]\\d{8}|237[79]\\d{7}|57[124-8]\\d{7}|841\\d{9})$'

const statements = [
  `alter table contacts add column phone_key text, add column provider_phone text`,
  `with old as materialized (
      select c.workspace_id, c.id, c.phone, regexp_replace(c.phone, r.old, r.key) as key, r.as_given
      from contacts c join (values ${RULES.map(
        ([old, key, asGiven]) => `(${quote(old)}, ${quote(key)}, ${asGiven === true})`,
      ).join(', ')}) as r (old, key, as_given) on c.phone ~ r.old
      where c.phone ~ ${quote(MAYBE_OLD)}
    ), first as (
      select distinct on (workspace_id, key) * from old o
      where not exists (select 1 from contacts c where c.workspace_id = o.workspace_id and c.phone = o.key)
      order by workspace_id, key, id
    )
    update contacts c set
      phone = case when f.as_given then c.phone else f.key end,
      phone_key = case when f.as_given then f.key end,
      provider_phone = case when f.as_given then null else f.phone end,
      search = case when f.as_given then c.search
        else left(c.search, length(c.search) - length(c.phone)) || f.key end
    from first f where c.workspace_id = f.workspace_id and c.id = f.id`,
  `create unique index contacts_line on contacts (workspace_id, (coalesce(phone_key, phone)))`,
  `drop index contacts_phone`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
