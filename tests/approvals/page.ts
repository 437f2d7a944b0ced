import assert from 'node:assert/strict'

/** A browser at one page: it keeps the cookie, and submits the form it was shown. */
export const visit = (url: string) => {
  let cookie = ''
  let text = ''
  const load = async (init: RequestInit = {}): Promise<Response> => {
    const response = await fetch(url, {
      redirect: 'manual',
      ...init,
      headers: { ...(init.headers as object), Cookie: cookie },
    })
    for (const header of response.headers.getSetCookie()) {
      assert.match(header, /; HttpOnly; SameSite=Strict/)
      cookie = header.split(';')[0]!
    }
    if (response.status === 303) return await load()
    text = await response.text()
    return response
  }
  const getToken = (): string => /name="token" value="([^"]+)"/.exec(text)![1]!
  const submit = async (fields: Record<string, string>, given: Record<string, string> = {}) => {
    const body = new URLSearchParams({ ...(fields['token'] ? {} : { token: getToken() }), ...fields })
    const { status, headers } = await load({ method: 'POST', body, headers: given })
    return { status, headers, text }
  }
  return { load, submit, getToken, getText: () => text }
}
