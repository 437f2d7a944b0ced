import { channelTypes } from '../../catalog/channels.ts'
import { fold } from '../../storage/text.ts'
import { type ChannelRow, readChannels, readStaff, readTeams } from '../../storage/workspace.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { pageOfFew } from '../core/paging.ts'

export const whoami: Handler<InputOf<'workspace_whoami'>, OutputOf<'workspace_whoami'>> = async ({
  actor: { workspace, staff, key },
  limits,
}) => ({
  workspace: {
    id: workspace.id,
    name: workspace.name,
    timezone: workspace.timezone,
    plan: {
      features: [...workspace.features],
      contact_limit: workspace.contactLimit,
      template_limit: workspace.templateLimit,
    },
  },
  staff: {
    id: staff.id,
    name: staff.name,
    role: staff.role,
    hide_phone_numbers: staff.hidePhoneNumbers,
    reports: staff.reports,
  },
  key: {
    id: key.id,
    name: key.name,
    scopes: [...key.scopes],
    test: key.test,
    api_version: key.apiVersion,
    expires_at: key.expiresAt,
  },
  limits: limits(),
})

/** Rows with a name that contains this, ignoring case; all without it. */
const named = <Row>(
  rows: readonly Row[],
  search: string | undefined,
  namesOf: (row: Row) => (string | null)[],
): readonly Row[] => {
  if (search === undefined) return rows
  const wanted = fold(search)
  return rows.filter((row) => namesOf(row).some((name) => name !== null && fold(name).includes(wanted)))
}

export const listStaff: Handler<InputOf<'workspace_list_staff'>, OutputOf<'workspace_list_staff'>> = async (
  { tx, actor, cursors },
  input,
) =>
  await pageOfFew(
    cursors,
    input,
    named(await readStaff(tx, actor.workspace.id), input.search, (row) => [row.name]),
    (row) => ({
      id: row.id,
      name: row.name,
      role: row.role,
      enabled: row.enabled,
      team_ids: row.team_ids ?? [],
      channel_ids: row.channel_ids,
    }),
  )

export const listTeams: Handler<InputOf<'workspace_list_teams'>, OutputOf<'workspace_list_teams'>> = async (
  { tx, actor, cursors },
  input,
) =>
  await pageOfFew(
    cursors,
    input,
    named(await readTeams(tx, actor.workspace.id), input.search, (row) => [row.name]),
    (row) => ({ id: row.id, name: row.name, staff_ids: row.staff_ids ?? [] }),
  )

const show = (row: ChannelRow) => ({
  id: row.id,
  provider_channel_id: row.provider_channel_id,
  name: row.name,
  type: row.type,
  identifier: row.identifier,
  is_default: row.is_default,
  status: row.status,
  web_surface: row.web_surface,
  provider_phone_number_id: row.provider_phone_number_id,
  payment_configuration: row.payment_configuration,
  quality_rating: row.quality_rating,
})

const warningsOf = (rows: readonly ReturnType<typeof show>[]): string[] =>
  rows.flatMap((row) => [
    ...(row.is_default && row.status !== 'connected'
      ? [`The default channel ${row.name ?? row.id} is ${row.status}; sends that name no channel will fail.`]
      : []),
    ...(row.type !== null && !(channelTypes as readonly string[]).includes(row.type)
      ? [`Channel ${row.id} has the type ${row.type}, which the type filter does not know.`]
      : []),
  ])

export const listChannels: Handler<InputOf<'workspace_channels'>, OutputOf<'workspace_channels'>> = async (
  { tx, actor, cursors },
  input,
) => {
  const { channelIds } = actor.staff
  const rows = (await readChannels(tx, actor.workspace.id)).filter(
    (row) =>
      (channelIds === null || channelIds.includes(row.id)) &&
      (input.type === undefined || row.type === input.type),
  )
  const { data, total, next_cursor } = await pageOfFew(
    cursors,
    input,
    named(rows, input.search, (row) => [row.name, row.identifier]),
    show,
  )
  return { data, total, next_cursor, warnings: warningsOf(data) }
}
