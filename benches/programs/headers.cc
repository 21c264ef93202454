// Much of the standard library read, a little of it instantiated.
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>

int main(int count, char **words)
{
    std::map<std::string, std::vector<std::string>> seen;
    for (int i = 0; i < count; i++)
        seen[std::string(words[i]).substr(0, 1)].push_back(words[i]);
    for (auto &[letter, list] : seen) {
        std::sort(list.begin(), list.end());
        std::cout << letter << ' ' << list.size() << ' ' << list.front() << std::endl;
    }
    return std::cout.fail();
}
