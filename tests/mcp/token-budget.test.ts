import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { catalog, type Operation } from '../../catalog/index.ts'
import { scopes } from '../../catalog/operation.ts'
import { createTool } from '../../mcp/tools.ts'
import { listOperations, listToolsetNames, MAX_DEFAULT_TOOLS } from '../../mcp/toolsets.ts'

const operations: readonly Operation[] = catalog

/** What a client puts before a model: the list as `tools/list` answers it, in tokens of o200k. */
const measure = (tools: readonly object[]): number => countTokens(JSON.stringify(tools))

const MAX_DEFAULT_TOKENS = 10_000
const MAX_TOOL_TOKENS = 1200

describe('Tokens of the lists of tools', () => {
  const list = (toolsets: string[] | undefined) =>
    listOperations(operations, scopes, { toolsets, readonly: false, compact: false }).map((op) =>
      createTool(op),
    )

  it('the default list is small', () => {
    const lists = {
      default: list(undefined),
      ...Object.fromEntries(listToolsetNames(operations).map((name) => [name, list([name])])),
    }
    for (const [name, tools] of Object.entries(lists))
      console.log(
        `${name.padEnd(16)} ${String(tools.length).padStart(3)} tools ${String(measure(tools)).padStart(6)} tokens`,
      )
    assert.ok(lists.default.length <= MAX_DEFAULT_TOOLS, `${lists.default.length} tools`)
    assert.ok(measure(lists.default) <= MAX_DEFAULT_TOKENS, `${measure(lists.default)} tokens`)
  })

  it('no tool is large', () => {
    for (const tool of operations.map(createTool))
      assert.ok(measure([tool]) <= MAX_TOOL_TOKENS, `${tool.name} takes ${measure([tool])} tokens`)
  })
})
