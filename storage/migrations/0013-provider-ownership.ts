import { type Kysely, sql } from 'kysely'

type DoubleNumber = { number: string; channels: { workspace_id: string; id: string }[] }

const statements = [
  // What the provider sends to a number is routed by it: it names one channel.
  `drop index channels_phone_number`,
  `create unique index channels_phone_number on channels (provider_phone_number_id)
    where provider_phone_number_id is not null`,

  // How far business time is ahead of real time: the sandbox moves it for one workspace.
  `alter table workspaces add column clock_offset_ms bigint not null default 0`,
  `create index workspaces_clock on workspaces (id) where clock_offset_ms <> 0`,
  `update workspaces set clock_offset_ms = (select value::bigint from settings where key = 'clock_offset_ms')
    where exists (select 1 from settings where key = 'clock_offset_ms')`,
  // A sandbox without workspaces has no other clock.
  `delete from settings where key = 'clock_offset_ms' and exists (select 1 from workspaces)`,

  // What one workspace orders concerns its accounts at the provider alone. The account '' and null are all.
  `alter table sandbox_numbers add column clock_offset_ms bigint not null default 0`,
  `alter table sandbox_faults add column account_ids text[] collate "C"`,
  `alter table sandbox_settings drop column id, add column account_id text collate "C" not null default ''`,
  `alter table sandbox_settings add primary key (account_id)`,
]

/** Returns how to make the channels differ, which `wcrm admin channels` does before this migration too. */
const describeDoubles = (doubles: readonly DoubleNumber[]): string =>
  [
    'A number at the provider belongs to one channel, but these have the same:',
    ...doubles.map(
      ({ number, channels }) =>
        `  ${number}: ${channels.map((c) => `channel ${c.id} of workspace ${c.workspace_id}`).join(', ')}`,
    ),
    'Nothing was changed. Give each but one another number, or none, and start again:',
    ...doubles.flatMap(({ channels }) =>
      channels
        .slice(1)
        .map(
          (c) =>
            `  wcrm admin channels update ${c.id} --workspace ${c.workspace_id} --provider-phone-number-id none`,
        ),
    ),
  ].join('\n')

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  const { rows } = await sql<DoubleNumber>`
    select provider_phone_number_id as number,
      json_agg(json_build_object('workspace_id', workspace_id::text, 'id', id::text)
        order by created_at, workspace_id, id) as channels
    from channels where provider_phone_number_id is not null
    group by provider_phone_number_id having count(*) > 1
    order by provider_phone_number_id limit 20`.execute(kysely)
  if (rows.length > 0) throw Object.assign(new Error(describeDoubles(rows)), { code: 'DOUBLE_NUMBERS' })
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
