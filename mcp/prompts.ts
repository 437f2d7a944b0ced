/** A task that a person can start by name. */
type Prompt = {
  name: string
  title: string
  description: string
  arguments: { name: string; description: string; required: true }[]
  text: (argument: string) => string
}

const promptDefinitions: readonly Prompt[] = [
  {
    name: 'contact_brief',
    title: 'Brief me on a contact',
    description: 'Who a contact is, and what is open with them.',
    arguments: [{ name: 'who', description: 'Name, phone number or contact id.', required: true }],
    text: (who) =>
      'Find the contact below with crm_search_contacts (or crm_get_contact, if it is an id) and read it in ' +
      'full. If several match, list them and ask. Then tell me in at most ten lines: who they are, tags, ' +
      `groups, important custom fields, and their latest conversations. Change nothing.\n\nContact: ${who}`,
  },
  {
    name: 'rehearsed_change',
    title: 'Change something safely',
    description: 'Runs a change with dry_run, shows the result, and makes the change once you approve.',
    arguments: [{ name: 'change', description: 'What should change.', required: true }],
    text: (change) =>
      'Find the tools that make the change below, and call each with `dry_run: true` first. Show me what ' +
      'would happen, with counts and names, and wait for my approval. Then call them again without ' +
      `dry_run; when you have to retry, send the same idempotency_key.\n\nChange: ${change}`,
  },
]

/** What `prompts/list` shows. */
export const prompts = promptDefinitions.map(({ text: _text, ...prompt }) => prompt)

/** Returns the messages of a prompt with its argument; undefined when the prompt or argument is missing. */
export const getPrompt = (name: string, values: Record<string, string> = {}) => {
  const prompt = promptDefinitions.find((each) => each.name === name)
  const value = prompt && values[prompt.arguments[0]!.name]
  if (!prompt || value === undefined) return undefined
  return {
    description: prompt.description,
    messages: [{ role: 'user' as const, content: { type: 'text' as const, text: prompt.text(value) } }],
  }
}
