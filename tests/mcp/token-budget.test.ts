import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { catalog } from '../../catalog/index.ts'
import { scopes } from '../../catalog/operation.ts'
import { compactInstructions, listInstructions } from '../../mcp/instructions.ts'
import { listTools } from '../../mcp/guide-tools.ts'
import { createOperationIndex } from '../../mcp/operation-search.ts'
import { createTool } from '../../mcp/tools.ts'
import { listToolsetNames, MAX_DEFAULT_TOOLS } from '../../mcp/toolsets.ts'

/** What a client puts before a model: the list as `tools/list` answers it, in tokens of o200k. */
const measure = (tools: readonly object[]): number => countTokens(JSON.stringify(tools))

const MAX_DEFAULT_TOKENS = 10_000
const MAX_COMPACT_TOKENS = 1500
const MAX_TOOL_TOKENS = 1200

describe('Tokens of the lists of tools', () => {
  const tools = new Map(catalog.map((op) => [op.name, createTool(op)]))
  const source = {
    operations: catalog,
    byName: new Map(catalog.map((op) => [op.name, op])),
    index: () => createOperationIndex(catalog),
    tools: () => tools,
  }
  const list = (toolsets: string[] | undefined, compact = false) =>
    listTools(source, { selection: { toolsets, readonly: false, compact }, scopes })

  it('the default list and compact mode are small', () => {
    const short = list(undefined)
    const compact = list(undefined, true)
    const others = listToolsetNames(catalog).map((name) => [name, list([name])] as const)
    for (const [name, tools] of [['default', short], ['compact', compact], ...others] as const)
      console.log(
        `${name.padEnd(16)} ${String(tools.length).padStart(3)} tools ${String(measure(tools)).padStart(6)} tokens`,
      )
    console.log(
      `instructions     ${countTokens(listInstructions)} tokens, compact ${countTokens(compactInstructions)}`,
    )
    assert.ok(short.length <= MAX_DEFAULT_TOOLS, `${short.length} tools`)
    assert.ok(measure(short) <= MAX_DEFAULT_TOKENS, `${measure(short)} tokens`)
    assert.equal(compact.length, 3)
    assert.ok(measure(compact) <= MAX_COMPACT_TOKENS, `${measure(compact)} tokens`)
    assert.ok(countTokens(listInstructions) <= 600)
  })

  it('no tool is large', () => {
    for (const tool of tools.values())
      assert.ok(measure([tool]) <= MAX_TOOL_TOKENS, `${tool.name} takes ${measure([tool])} tokens`)
  })
})
