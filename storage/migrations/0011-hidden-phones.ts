import { type Kysely, sql } from 'kysely'

// Digits of the scripts that customers write, in the order of their values.
const digits = ['0123456789', '٠١٢٣٤٥٦٧٨٩', '۰۱۲۳۴۵۶۷۸۹', '०१२३४५६७८९', '০১২৩৪৫৬৭৮৯', '０１２３４５６７８９']
const [ascii, ...others] = digits
const inAscii = `translate(name, '${others.join('')}', '${ascii!.repeat(others.length)}')`
const onlyDigits = `regexp_replace(${inAscii}, '[^0-9]', '', 'g')`

const statements = [
  // The phones that staff from whom phones are hidden named on a day, of real time in UTC.
  `create table phone_budgets (
    workspace_id bigint not null, staff_id bigint not null, day timestamptz(3) not null,
    phones text[] not null, primary key (workspace_id, staff_id, day)
  )`,
  // A contact's name never stands in for its phone, whole or without the country code.
  `update contacts set name = null, name_key = '', search = E'\\n' || phone
    where name is not null and phone is not null
      and ${inAscii} ~ '^[-0-9[:space:][:punct:]+\\u00a0\\u200b-\\u200f\\u2010-\\u2015\\u202a-\\u202f\\u2060\\ufeff]*$'
      and length(${onlyDigits}) >= 7 and phone like '%' || ltrim(${onlyDigits}, '0')`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
