import type { OperationName } from '../catalog/index.ts'
import type { Operation } from '../catalog/operation.ts'

/** The tools that `/mcp?toolsets=…&readonly=true&mode=compact` selects. */
export type ToolSelection = {
  /** Groups named in the query; `all`; or undefined: the default tools. */
  readonly toolsets: readonly string[] | undefined
  readonly readonly: boolean
  /** Three tools that search and run operations, in place of a list. */
  readonly compact: boolean
}

/** More tools distract an agent, and some clients drop the excess. Two of them lead to all others. */
export const MAX_DEFAULT_TOOLS = 25

/**
 * The operations listed without `?toolsets=`: what most conversations about customers need. `find_tools` and
 * `describe_operation` follow them.
 */
const defaultTools: readonly OperationName[] = [
  'workspace_whoami',
  'workspace_list_staff',
  'crm_search_contacts',
  'crm_get_contact',
  'crm_upsert_contact',
  'crm_update_contact',
  'crm_tag_contacts',
  'crm_list_tags',
  'crm_list_groups',
  'crm_list_custom_fields',
  'messaging_send_template',
  'messaging_send_reply',
  'messaging_list_templates',
  'inbox_queue',
  'inbox_search_conversations',
  'inbox_get_conversation',
  'inbox_list_messages',
  'inbox_assign_conversation',
  'inbox_close_conversation',
  'inbox_tag_conversation',
  'inbox_add_note',
  'reports_workspace_summary',
  'approvals_get',
]

/** The toolsets an operation is in: its command group, such as `contacts`, and its domain, such as `crm`. */
export const getToolsets = (op: Operation): string[] => {
  const domain = op.name.split('_')[0]!
  const group = op.cli.includes(' ') ? op.cli.split(' ')[0]! : domain
  return [...new Set([group, domain])]
}

/** Every toolset name of these operations, sorted, with `all`. */
export const listToolsetNames = (operations: readonly Operation[]): string[] => [
  'all',
  ...[...new Set(operations.flatMap(getToolsets))].sort(),
]

/**
 * True when the operation can be called at this URL. The default set only shortens the list; toolsets in
 * the query also restrict the calls.
 */
export const isCallable = (op: Operation, { toolsets, readonly }: ToolSelection): boolean =>
  !(readonly && op.scope !== 'mcp:read') &&
  (toolsets === undefined ||
    toolsets.includes('all') ||
    getToolsets(op).some((name) => toolsets.includes(name)))

/** Whether the list has the default tools alone. */
export const isShortened = (operations: readonly Operation[], { toolsets }: ToolSelection): boolean =>
  toolsets === undefined && operations.length > MAX_DEFAULT_TOOLS

/**
 * Returns the operations to list, in the order of the catalog: callable at this URL, allowed to the key, and in
 * the default set if the query names no toolsets.
 */
export const listOperations = (
  operations: readonly Operation[],
  isAllowed: (op: Operation) => boolean,
  selection: ToolSelection,
): Operation[] => {
  const shortened = isShortened(operations, selection)
  return operations.filter(
    (op) =>
      isCallable(op, selection) &&
      isAllowed(op) &&
      (!shortened || (defaultTools as readonly string[]).includes(op.name)),
  )
}
