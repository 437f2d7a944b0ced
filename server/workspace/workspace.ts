import { channelTypes } from '../../catalog/channels.ts'
import { type ChannelRow, countChannels, countStaff, countTeams, pageOfChannels, pageOfStaff, pageOfTeams } from '../../storage/workspace.ts'
import type { Handler, InputOf, OutputOf } from '../operations.ts'
import { pageOf } from '../paging.ts'

export const whoami: Handler<InputOf<'workspace_whoami'>, OutputOf<'workspace_whoami'>> = async ({ actor: { workspace, staff, key }, limits }) => ({
  workspace: {
    id: workspace.id, name: workspace.name, timezone: workspace.timezone,
    plan: { features: [...workspace.features], contact_limit: workspace.contactLimit, template_limit: workspace.templateLimit },
  },
  staff: { id: staff.id, name: staff.name, role: staff.role, hide_phone_numbers: staff.hidePhoneNumbers, reports: staff.reports },
  key: { id: key.id, name: key.name, scopes: [...key.scopes], test: key.test, api_version: key.apiVersion, expires_at: key.expiresAt },
  limits: limits(),
})

export const listStaff: Handler<InputOf<'workspace_list_staff'>, OutputOf<'workspace_list_staff'>> = ({ tx, actor, cursors }, input) =>
  pageOf(cursors, input,
    (after, limit) => pageOfStaff(tx, actor.workspace.id, input.search, after?.[0] ?? null, limit),
    () => countStaff(tx, actor.workspace.id, input.search), (row) => [row.id],
    (row) => ({ id: row.id, name: row.name, role: row.role, enabled: row.enabled, team_ids: row.team_ids ?? [], channel_ids: row.channel_ids }))

export const listTeams: Handler<InputOf<'workspace_list_teams'>, OutputOf<'workspace_list_teams'>> = ({ tx, actor, cursors }, input) =>
  pageOf(cursors, input,
    (after, limit) => pageOfTeams(tx, actor.workspace.id, input.search, after?.[0] ?? null, limit),
    () => countTeams(tx, actor.workspace.id, input.search), (row) => [row.id],
    (row) => ({ id: row.id, name: row.name, staff_ids: row.staff_ids ?? [] }))

const show = (row: ChannelRow) => ({
  id: row.id, provider_channel_id: row.provider_channel_id, name: row.name, type: row.type, identifier: row.identifier, is_default: row.is_default,
  status: row.status, web_surface: row.web_surface, provider_phone_number_id: row.provider_phone_number_id,
  payment_configuration: row.payment_configuration, quality_rating: row.quality_rating,
})

const warningsOf = (rows: readonly ReturnType<typeof show>[]): string[] => rows.flatMap((row) => [
  ...(row.is_default && row.status !== 'connected' ? [`The default channel ${row.name ?? row.id} is ${row.status}; sends that name no channel will fail.`] : []),
  ...(row.type !== null && !(channelTypes as readonly string[]).includes(row.type) ? [`Channel ${row.id} has the type ${row.type}, which the type filter does not know.`] : []),
])

export const listChannels: Handler<InputOf<'workspace_channels'>, OutputOf<'workspace_channels'>> = async ({ tx, actor, cursors }, input) => {
  const filter = { type: input.type, search: input.search, onlyIds: actor.staff.channelIds }
  const { data, total, next_cursor } = await pageOf(cursors, input,
    (after, limit) => pageOfChannels(tx, actor.workspace.id, filter, after?.[0] ?? null, limit),
    () => countChannels(tx, actor.workspace.id, filter), (row) => [row.id], show)
  return { data, total, next_cursor, warnings: warningsOf(data) }
}
