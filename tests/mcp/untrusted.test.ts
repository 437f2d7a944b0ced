import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { catalog, getOutputSchema } from '../../catalog/index.ts'
import { type JsonSchema, toInlinedJsonSchema } from '../../catalog/json-schema.ts'
import { showHidden, UNTRUSTED } from '../../catalog/text.ts'
import { nameUntrusted, removeHidden } from '../../mcp/untrusted.ts'

/**
 * Fields of text that hold no words of outsiders: codes, ids, what staff named or wrote, and what the service says.
 * A new field of text must be marked `untrusted` in the catalog, or be added here. First the ends of pointers of
 * fields inside a record, then the fields of records themselves, by operation.
 */
const trustedEnds = `
  /next_cursor /notes/* /warnings/*/path /warnings/*/message /resolved_dates/*/path /resolved_dates/*/input
  /unavailable/*/reason /unavailable/*/metric /range/from /range/to /range/timezone /range/preset
  /failures/*/code /failures/*/id /failures/*/errors/*/pointer /failures/*/errors/*/fix /failures/*/errors/*/code
  /failures/*/errors/*/allowed/* /failed/*/id /failed/*/name /count_error/code /count_error/message
  /tags/*/name /groups/*/name /groups/* /group/name /group/emoji /tag/name /assignee/name /actor/name
  /approved_by/name /decided_by/name /from/name
  /attributes/*/key /attributes/*/label /attributes/*/type /options/*/label /options/*/value /custom_headers/*
  /channel/name /channel/type /channel/phone /contact/phone /health/reason /health/messaging_limit
  /conversation/state /conversations/*/state /window/kind
  /sla/policy /target/type /target/id
  /message/template/name /message/template/language /data/*/template/name /data/*/template/language
  /header/format /header/text /header/variables/*/sample /header/variables/*/media_sample
  /body/text /body/variables/*/sample /limited_time_offer/text
  /buttons/*/type /buttons/*/text /buttons/*/url /buttons/*/url_example /buttons/*/phone_number
  /buttons/*/coupon_code /buttons/*/flow_id /buttons/*/flow_action /buttons/*/navigate_screen
  /buttons/*/otp_type /supported_apps/*/package_name /supported_apps/*/signature_hash
  /issues/*/rule /issues/*/path /issues/*/message /issues/*/fix /lint/preview /payload_preview/*/*
  /content/buttons/*/id /content/rows/*/id /content/url
  /interactive/buttons/*/id /interactive/rows/*/id /interactive/url
  /saved_filters/*/name
  /endpoint/url /endpoint/description /endpoint/disabled_reason /endpoint/signing_secret
  /subscriptions/event_types/*/id /delivery/event_id /delivery/event_type_id
  /saved_filter/name /saved_filter/description /saved_filter/filter/*
  /workspace/name /workspace/timezone /workspace/plan/features/* /staff/name /key/name /key/api_version
  /report/name /report/from /report/to /report/timezone /population/note /workload_now/*/name /previous/data/*/name
`
const trustedOf: Readonly<Record<string, string>> = {
  approvals_get: '/approval_url /summary_version',
  'approvals_(list|get)': '/operation /note /edited_text /outcome/code /outcome/reason',
  'approvals_(approve|decline|cancel)':
    '/approval/operation /approval/note /approval/outcome/code /approval/outcome/reason',
  workspace_whoami:
    '/key/policy/bounds/templates/* /key/policy/bounds/hours/from /key/policy/bounds/hours/to',
  audit_list: '/operation /code /request_id',
  crm_check_filter: '/filter/* /explanation',
  'crm_create_custom_field|crm_update_custom_field|crm_list_custom_fields': '/key /label',
  'crm_get_contact|crm_search_contacts|crm_update_contact|crm_upsert_contact':
    '/phone /contact/phone /warnings/*',
  'crm_get_saved_filter|crm_list_saved_filters|crm_update_saved_filter':
    '/name /description /filter/* /changes/*',
  'crm_(tag|untag|update|delete)_contacts|crm_(add|remove)_contacts_(to|from)_group':
    '/failures/*/message /would_create/*/name /would_create/*/nearest ' +
    '/job/operation /job/input/* /job/problem/code /job/problem/detail /job/created_by/name',
  'inbox_(assign|close)_conversations':
    '/failures/*/message /samples/*/channel ' +
    '/job/operation /job/input/* /job/problem/code /job/problem/detail /job/created_by/name',
  'jobs_(get|list|list_failures|pause|resume|cancel|undo)':
    '/operation /input/* /problem/code /problem/detail /created_by/name /message /code ' +
    '/job/operation /job/input/* /job/problem/code /job/problem/detail /job/created_by/name',
  'crm_list_groups|crm_list_tags': '/name /emoji',
  crm_update_group: '/changes/*',
  crm_change_phone: '/contact/phone /warnings/*',
  crm_find_duplicates: '/contact/phone /other_contact/phone',
  crm_merge_contacts: '/contact/phone /fields/*/name',
  crm_undo_contact_merge: '/contact/phone /kept_contact/phone /kept_contact/tags/*/name',
  events_list: '/type',
  'crm_erase_contact|crm_(list|get)_erasures?':
    '/tables/*/table /created_by/name /erasure/tables/*/table /erasure/created_by/name',
  'crm_export_(person|contacts)|crm_(get_export|list_exports)':
    '/tables/*/table /file_name /sha256 /problem /created_by/name /url /export/tables/*/table ' +
    '/export/file_name /export/sha256 /export/problem /export/created_by/name',
  inbox_assign_conversation: '/assigned_to',
  inbox_queue: '/tags/* /templates/*/category /templates/*/text /templates/*/example/*',
  'inbox_get_conversation|inbox_search_conversations': '/reply_status /last_message/from/name',
  'messaging_(list|create|update)_quick_messages?':
    '/code /title /type /text /media_url /template_name /visibility',
  'messaging_(list|create|get)_short_links?': '/code /url /message /qr_image_url',
  'messaging_(get|list|create|update)_templates?':
    '/name /language /category /sub_category /status /quality_rating /body_preview /header_format /footer /draft/* ' +
    '/send_schema/* /send_example/* /business_account_id /business_account_name',
  messaging_get_message: '/template/name /template/language',
  'messaging_(get_broadcast|list_broadcasts)': '/name /template_name',
  messaging_lint_template: '/preview',
  messaging_send_template: '/warnings/*',
  'messaging_(send_bulk|reschedule_broadcast)':
    '/starts_at /broadcast/name /broadcast/template_name /job/operation /job/input/* /job/problem/code ' +
    '/job/problem/detail /job/created_by/name /countries/*/country /values/*/variable /values/*/fallback',
  messaging_sync_templates:
    '/changes/*/name /changes/*/language /changes/*/status /changes/*/previous_status ' +
    '/problems/*/business_account_id /problems/*/business_account_name /problems/*/code /problems/*/reason',
  messaging_upload_template_sample: '/media_handle',
  'reports_staff|workspace_list_staff|workspace_list_teams': '/name',
  'webhooks_(get_delivery|list_deliveries)': '/event_id /event_type_id',
  'webhooks_(get_endpoint|list_endpoints|create_endpoint|rotate_secret|update_endpoint)':
    '/url /description /custom_headers/* /disabled_reason /signing_secret /warning /changed/*',
  webhooks_send_test: '/event_type_id /outcome/error',
  webhooks_list_event_types: '/id /description /operations/* /schema/* /sample/*',
  workspace_channels:
    '/name /type /identifier /provider_channel_id /web_surface /provider_phone_number_id ' +
    '/payment_configuration /quality_rating /warnings/*',
}

const words = (text: string): string[] => text.split(/\s+/).filter(Boolean)
const ends = words(trustedEnds)

/** Fields that any value can be in, or text whose values the schema does not name. */
const isOpenText = (node: JsonSchema): boolean => {
  if (node.enum !== undefined || node.const !== undefined || node.format === 'date-time') return false
  // Ids.
  if (typeof node.pattern === 'string' && node.pattern.startsWith('^')) return false
  if (node.properties !== undefined || node.items !== undefined || isObject(node.additionalProperties))
    return false
  const types = ([] as unknown[]).concat(node.type ?? [])
  return types.length === 0 || types.includes('string') || types.includes('object')
}

const isObject = (value: unknown): value is JsonSchema =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

/** Yields the pointer of each field of text that is not marked. */
const listUnmarked = function* (node: unknown, pointer = ''): Generator<string> {
  if (!isObject(node) || node[UNTRUSTED] === true) return
  const branches = [node.anyOf, node.oneOf, node.allOf].flatMap((list) => (list ?? []) as JsonSchema[])
  for (const branch of branches) yield* listUnmarked(branch, pointer)
  if (branches.length === 0 && isOpenText(node)) yield pointer
  for (const [name, child] of Object.entries((node.properties ?? {}) as JsonSchema))
    yield* listUnmarked(child, `${pointer}/${name}`)
  yield* listUnmarked(node.items, `${pointer}/*`)
  yield* listUnmarked(node.additionalProperties, `${pointer}/*`)
}

describe('MCP: text of outsiders', () => {
  it('every field of text is marked or known to be trusted', () => {
    const used = new Set<string>()
    const unknown: string[] = []
    for (const op of catalog)
      for (const pointer of listUnmarked(toInlinedJsonSchema(getOutputSchema(op)))) {
        const end = ends.find((one) => pointer.endsWith(one) && pointer.split('/').length > 2)
        const [names] =
          Object.entries(trustedOf).find(
            ([pattern, fields]) =>
              new RegExp(`^(?:${pattern})$`).test(op.name) &&
              words(fields).includes(pointer.replace(/^\/data\/\*/, '')),
          ) ?? []
        if ((end ?? names) === undefined && pointer !== '/next_cursor') unknown.push(`${op.name} ${pointer}`)
        for (const known of [end, names]) if (known !== undefined) used.add(known)
      }
    assert.deepEqual(unknown, [])
    const left = [...ends, ...Object.keys(trustedOf)].filter(
      (one) => !used.has(one) && one !== '/next_cursor',
    )
    assert.deepEqual(left, [], 'no longer needed')
  })

  it('what nobody sees is removed from answers and shown in questions', () => {
    const tag = String.fromCodePoint(0xe0041)
    for (const [text, cleaned, shown] of [
      ['plain "quoted" \\ \\u200b 漢字\n\t', undefined, undefined],
      ['👨‍👩‍👧 ❤️ 1️⃣', undefined, undefined],
      ['🏴󠁧󠁢󠁥󠁮󠁧󠁿 🏴󠁧󠁢󠁳󠁣󠁴󠁿', undefined, undefined],
      ['می‌خواهم', undefined, undefined],
      ['a\u200bb\u202ec\ufeff', 'abc', 'a\\u{200b}b\\u{202e}c\\u{feff}'],
      [`a${tag}b`, 'ab', 'a\\u{e0041}b'],
      [`🏴${tag}\u{e007f}`, '🏴', '🏴\\u{e0041}\\u{e007f}'],
      ['x\u200dy A\ufe0f\u{e0101}', 'xy A', 'x\\u{200d}y A\\u{fe0f}\\u{e0101}'],
      ['a\u0000\u001b[31m\r\n\u0085', 'a[31m\n', 'a\\u{0}\\u{1b}[31m\\u{d}\n\\u{85}'],
      ['a\u2028b\u2066c', 'abc', 'a\\u{2028}b\\u{2066}c'],
    ] as const) {
      assert.equal(JSON.parse(removeHidden(JSON.stringify({ text }))).text, cleaned ?? text)
      assert.equal(showHidden(text), shown ?? text)
    }
  })

  it('no hidden character is missed by the quick test', () => {
    const check = (text: string): void =>
      assert.equal(
        JSON.parse(removeHidden(JSON.stringify(text))),
        showHidden(text).replaceAll(/\\u\{[\da-f]+\}/g, ''),
        text.codePointAt(1)!.toString(16),
      )
    for (let start = 0; start < 0x110000; start += 256) {
      if (start >= 0xd800 && start < 0xe000) continue
      const block = Array.from({ length: 256 }, (_, i) => `x${String.fromCodePoint(start + i)}`)
      if (showHidden(block.join('')) === block.join('')) check(block.join(''))
      else block.forEach(check)
    }
  })

  it('the list of fields is added to the text of an answer', () => {
    assert.equal(nameUntrusted('{}', ['/name']), '{}')
    assert.equal(nameUntrusted('{"a":1}', ['/a', '/name']), '{"a":1,"untrusted_fields":["/a"]}')
    assert.equal(nameUntrusted('{"l":[]}', ['/l/*']), '{"l":[],"untrusted_fields":["/l/*"]}')
    assert.equal(nameUntrusted('{"a":1}', []), '{"a":1}')
  })
})
